import { describe, expect, test } from 'vitest';
import { readCapture } from '#testkit/reading/captures.ts';
import { parseModelList } from '../../../src/replicas/probes/model-list.ts';

describe('the answer to GET /v1/models', () => {
  test.each([
    ['vllm/models', 'vllm'],
    ['llama/models', 'llamacpp'],
  ])('from a real engine shows its models and, by owned_by, the engine: %s', (capture, engine) => {
    expect(parseModelList(readCapture(capture).body.toString('utf8'))).toEqual({ models: ['tiny'], engine });
  });

  test.each([
    ['sglang', 'sglang'],
    ['library', 'ollama'],
    ['somebody-else', 'openai'],
    [undefined, 'openai'],
    [7, 'openai'],
  ])('with owned_by %s is from the engine %s', (owner, engine) => {
    const list = { data: [{ id: 'a', owned_by: owner }, { id: 'b' }] };
    expect(parseModelList(JSON.stringify(list))).toEqual({ models: ['a', 'b'], engine });
  });

  test.each(['', 'null', '[]', '{}', '{"data":{}}', '{"data":', '<html>'])(
    'is not a model list: %s',
    (text) => {
      expect(parseModelList(text)).toBeNull();
    },
  );

  test('may contain entries that are not models, which are left out', () => {
    expect(parseModelList('{"data":[null,1,{"id":2},{"id":"a"}]}')?.models).toEqual(['a']);
  });
});
