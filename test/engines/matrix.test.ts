import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ASKS, Cell, ENGINES } from '../support/engines/matrix.ts';

const cuts = fc.array(fc.nat(20_000), { maxLength: 6 });

describe.for(ENGINES.map((engine) => [engine.name, engine] as const))('%s', ([, engine]) => {
  test.for(engine.cases.map((exchange) => [exchange.name, exchange] as const))(
    '%s: the client gets what the engine sends to its own request, however the reads are cut',
    { timeout: 60_000 },
    async ([, exchange]) => {
      await using cell = await Cell.start(engine, exchange);
      for (const ask of ASKS) expect(await cell.compare(ask, [])).toBeNull();
      const isEqual = async (ask: (typeof ASKS)[number], places: readonly number[]) => {
        expect(await cell.compare(ask, places)).toBeNull();
      };
      await fc.assert(fc.asyncProperty(fc.constantFrom(...ASKS), cuts, isEqual), { numRuns: 24 });
    },
  );
});
