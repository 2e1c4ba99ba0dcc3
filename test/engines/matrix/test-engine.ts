import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { asksOf, Cell, ENGINES } from '#testkit/engines/matrix.ts';

const cuts = fc.array(fc.nat(20_000), { maxLength: 6 });

/** Tests every exchange of the engines with these names. The engines are in several files, which run in parallel. */
export function testEngines(isMeant: (name: string) => boolean): void {
  const engines = ENGINES.filter(({ name }) => isMeant(name));
  describe.for(engines.map((engine) => [engine.name, engine] as const))('%s', ([, engine]) => {
    test.for(engine.cases.map((exchange) => [exchange.name, exchange] as const))(
      '%s: the client gets what the engine sends to its own request, however the reads are cut',
      async ([, exchange]) => {
        await using cell = await Cell.start(engine, exchange);
        const asks = asksOf(exchange);
        for (const ask of asks) expect(await cell.compare(ask, [])).toBeNull();
        const isEqual = async (ask: (typeof asks)[number], places: readonly number[]) => {
          expect(await cell.compare(ask, places)).toBeNull();
        };
        await fc.assert(fc.asyncProperty(fc.constantFrom(...asks), cuts, isEqual), { numRuns: 24 });
      },
    );
  });
}
