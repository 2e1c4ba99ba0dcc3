import { describe, expect, test } from 'vitest';
import { answerJson, answerStream, chatChunk, DONE, startFakeReplica } from '#testkit/fake-replica.ts';
import { readCapture } from '#testkit/reading/captures.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const image = { type: 'image_url', image_url: { url: `data:image/png;base64,${'A'.repeat(4000)}` } };

const requests: readonly (readonly [string, string, object, object])[] = [
  ['completions of one string', 'completions', { prompt: 'The séa' }, { prompt_chars: 7 }],
  ['completions of several strings', 'completions', { prompt: ['The sea', 'A tree'] }, { prompt_chars: 13 }],
  ['completions of token ids', 'completions', { prompt: [12, 34, 56] }, { prompt_chars: undefined }],
  [
    'completions of lists of token ids',
    'completions',
    { prompt: [[12], [34, 56]] },
    { prompt_chars: undefined },
  ],
  [
    'completions of ids and strings mixed',
    'completions',
    { prompt: [12, 'sea'] },
    { prompt_chars: undefined },
  ],
  ['embeddings of one string', 'embeddings', { input: '海は広い' }, { prompt_chars: 4 }],
  ['embeddings of token ids', 'embeddings', { input: [[1, 2]] }, { prompt_chars: undefined }],
  [
    'a chat with an image',
    'chat/completions',
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'What is this?' }, image] }] },
    { prompt_chars: 13 },
  ],
  [
    'a chat with a turn of tool calls',
    'chat/completions',
    {
      messages: [
        { role: 'user', content: 'Go' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', function: { name: 'f', arguments: '{}' } }],
        },
      ],
    },
    { prompt_chars: 2 },
  ],
  ['a limit by its old name', 'completions', { prompt: 'x', max_tokens: 5 }, { max_tokens: 5 }],
  [
    'a limit by both names',
    'chat/completions',
    { messages: [], max_tokens: 5, max_completion_tokens: 7 },
    { max_tokens: 7 },
  ],
  ['no limit', 'chat/completions', { messages: [] }, { max_tokens: undefined }],
];

describe('the record of a request', () => {
  test.for(requests)('%s', async ([, endpoint, members, expected]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    await gateway.post(`/v1/${endpoint}`, { model: 'm', ...members });

    const record = await gateway.nextRecord();
    expect(record.endpoint).toBe(`/v1/${endpoint}`);
    for (const [name, value] of Object.entries(expected)) {
      expect(record[name as keyof typeof record], name).toBe(value);
    }
  });

  test('the same chat with another image has the same length and other hashes', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { prefix_hash: { block_chars: 16 } },
    });
    const text = { type: 'text', text: 'x'.repeat(40) };
    const other = { type: 'image_url', image_url: { url: `data:image/png;base64,${'B'.repeat(4000)}` } };

    for (const content of [
      [image, text],
      [other, text],
    ]) {
      await gateway.chat({ messages: [{ role: 'user', content }] });
    }

    const [first, second] = await gateway.waitForRecords(2);
    expect(first?.prompt_chars).toBe(second?.prompt_chars);
    expect(first?.prefix_hashes?.length).toBeGreaterThan(1);
    expect(first?.prefix_hashes).not.toEqual(second?.prefix_hashes);
  });
});

const captures: readonly (readonly [string, string, object])[] = [
  ['llama/chat-nostream', 'llamacpp', { prompt_tokens: 28, cached_tokens: 0, finish_reasons: ['length'] }],
  ['llama/chat-nostream-n2', 'llamacpp', { prompt_tokens: 18, finish_reasons: ['length', 'length'] }],
  ['llama/completions-nostream-tokens', 'llamacpp', { prompt_tokens: 3, completion_tokens: 4 }],
  ['llama/embeddings', 'llamacpp', { completion_tokens: undefined }],
  ['llama/err-too-long', 'llamacpp', { status: 400, prompt_tokens: undefined, error_type: undefined }],
  ['vllm/chat-nostream', 'vllm', { prompt_tokens: 28, cached_tokens: 0, finish_reasons: ['length'] }],
  ['vllm/chat-tools-nostream', 'vllm', { status: 200, stream: false }],
  ['llama/embeddings-base64', 'llamacpp', { completion_tokens: undefined }],
  ['vllm/err-unknown-model', 'vllm', { status: 404, prompt_tokens: undefined }],
];

describe('the record of a captured answer', () => {
  test.for(captures)('%s', async ([name, engine, expected]) => {
    const capture = readCapture(name);
    await using replica = await startFakeReplica({
      script: async ({ request, head, end }) => {
        await request.body;
        await head(capture.status, capture.headers);
        end(capture.body);
      },
    });
    await using gateway = await startGateway({ replicas: [{ name: 'a', url: replica.url, engine }] });

    const response = await gateway.chat();

    expect(response.status).toBe(capture.status);
    expect(Buffer.from(await response.arrayBuffer())).toEqual(capture.body);
    const record = await gateway.nextRecord();
    const isEmbedding = name.includes('embeddings');
    if (isEmbedding) expect(record.prompt_tokens).toBeGreaterThan(0);
    for (const [field, value] of Object.entries(expected)) {
      expect(record[field as keyof typeof record], field).toEqual(value);
    }
  });

  test('the cache of vLLM shows: 0 tokens of a prompt first, 256 of it the second time', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [{ name: 'a', url: replica.url, engine: 'vllm' }] });

    for (const name of ['vllm/chat-stream-cached-1', 'vllm/chat-stream-cached-2']) {
      replica.answerOnce(answerStream(readCapture(name).chunks));
      await (await gateway.chat({ stream: true })).text();
    }

    const records = await gateway.waitForRecords(2);
    expect(records.map(({ cached_tokens }) => cached_tokens)).toEqual([0, 256]);
  });

  test('a plain answer has no first token and no gaps; a stream without output has neither', async () => {
    await using replica = await startFakeReplica({ script: answerJson({ choices: [] }) });
    await using gateway = await startGateway({ replicas: [replica] });
    await (await gateway.chat()).text();
    replica.answer(answerStream([chatChunk('', 'stop'), DONE]));
    await (await gateway.chat({ stream: true })).text();

    for (const record of await gateway.waitForRecords(2)) {
      expect(record.ttft_ms).toBeUndefined();
      expect(record.gap_p50_ms).toBeUndefined();
      expect(record.gap_p95_ms).toBeUndefined();
    }
  });
});
