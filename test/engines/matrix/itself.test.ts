import { describe, expect, test } from 'vitest';
import { llamacpp } from '../../support/engines/llamacpp.ts';
import { Cell } from '../../support/engines/matrix.ts';
import { ollama } from '../../support/engines/ollama.ts';
import { openai } from '../../support/engines/openai.ts';
import { vllm } from '../../support/engines/vllm.ts';

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
