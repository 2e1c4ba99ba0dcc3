import { describe, expect, test } from 'vitest';
import { llamacpp } from '#testkit/engines/llamacpp.ts';
import { Cell } from '#testkit/engines/matrix.ts';
import { ollama } from '#testkit/engines/ollama.ts';
import { openai } from '#testkit/engines/openai.ts';
import { vllm } from '#testkit/engines/vllm.ts';

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
