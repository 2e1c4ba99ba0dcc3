import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { asksOf, Cell, ENGINES } from '#testkit/engines/matrix.ts';
import { runs } from '#testkit/runs.ts';

const cuts = fc.array(fc.nat(20_000), { maxLength: 6 });

/**
 * Tests the exchanges of the engines with these names, with further keys of the gateway's configuration, all but those
 * that a set names. The engines are in several files, which run in parallel.
 */
export function testEngines(
  isMeant: (name: string) => boolean,
  config: object = {},
  except: ReadonlySet<string> = new Set(),
): void {
  const engines = ENGINES.filter(({ name }) => isMeant(name));
  describe.for(engines.map((engine) => [engine.name, engine] as const))('%s', ([, engine]) => {
    const cases = engine.cases.filter(({ name }) => !except.has(name));
    test.for(cases.map((exchange) => [exchange.name, exchange] as const))(
      '%s: the client gets what the engine sends to its own request, however the reads are cut',
      async ([, exchange]) => {
        await using cell = await Cell.start(engine, exchange, undefined, config);
        const asks = asksOf(exchange);
        for (const ask of asks) expect(await cell.compare(ask, [])).toBeNull();
        const isEqual = async (ask: (typeof asks)[number], places: readonly number[]) => {
          expect(await cell.compare(ask, places)).toBeNull();
        };
        await fc.assert(fc.asyncProperty(fc.constantFrom(...asks), cuts, isEqual), { numRuns: runs(24) });
      },
    );
  });
}
