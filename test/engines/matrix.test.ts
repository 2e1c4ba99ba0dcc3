import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { llamacpp } from '../support/engines/llamacpp.ts';
import { asksOf, Cell, ENGINES } from '../support/engines/matrix.ts';
import { ollama } from '../support/engines/ollama.ts';
import { openai } from '../support/engines/openai.ts';
import { vllm } from '../support/engines/vllm.ts';

const cuts = fc.array(fc.nat(20_000), { maxLength: 6 });

describe.for(ENGINES.map((engine) => [engine.name, engine] as const))('%s', ([, engine]) => {
  test.for(engine.cases.map((exchange) => [exchange.name, exchange] as const))(
    '%s: the client gets what the engine sends to its own request, however the reads are cut',
    { timeout: 60_000 },
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

describe('the matrix itself', () => {
  test.for([
    ['chat', llamacpp],
    ['chat', vllm],
    ['chat, n = 2', vllm],
    ['completions', ollama],
    ['chat', openai],
  ] as const)('shows a difference in "%s" when the engine is taken for TGI', async ([name, engine]) => {
    const exchange = engine.cases.find((one) => one.name === name);
    if (exchange === undefined) throw new Error(`no case ${name}`);
    await using cell = await Cell.start({ ...engine, engine: 'tgi' }, exchange);
    expect(await cell.compare(undefined, [])).not.toBeNull();
    expect(await cell.compare({ include_usage: true }, [])).toBeNull();
  });
});
