import fc from 'fast-check';
import { expect, test } from 'vitest';
import { answerStream, chatChunk, DONE, event, startFakeReplica, usageChunk } from '#testkit/fake-replica.ts';
import { readCapture } from '#testkit/reading/captures.ts';
import { lastingFactsOf } from '#testkit/reading/lasting-facts.ts';
import { runs } from '#testkit/runs.ts';
import { startGateway } from '#testkit/start-gateway.ts';

/** Streams with everything that is awkward to cut: long characters, mixed line ends, comments, usage twice. */
const streams: readonly (readonly [name: string, engine: string, bytes: Buffer])[] = [
  ['llama.cpp', 'llamacpp', readCapture('llama/chat-stream-usage').body],
  ['llama.cpp with two choices', 'llamacpp', readCapture('llama/chat-stream-n2').body],
  ['vLLM', 'vllm', readCapture('vllm/chat-stream-usage').body],
  ['vLLM with tools', 'vllm', readCapture('vllm/chat-tools-stream').body],
  [
    'mixed line ends',
    'openai',
    Buffer.from(
      [
        ': comment\r\n\r\n',
        chatChunk('é😀').replaceAll('\n', '\r\n'),
        chatChunk('x').replaceAll('\n', '\r'),
        `event: x\nid: 7\n${chatChunk('y')}`,
        event({ choices: [{ index: 0, delta: { content: 'z' } }], usage: null }),
        '\n\n',
        usageChunk(9, 4),
        DONE.trimEnd(),
      ].join(''),
    ),
  ],
];

/** Bytes cut at these places. */
function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const edges = [0, ...[...new Set(places)].sort((a, b) => a - b), bytes.length];
  return edges.slice(1).map((edge, i) => bytes.subarray(edges[i], edge));
}

test.for(streams)(
  'however a stream of %s is cut, the client gets the same bytes and the record is the same',
  async ([, engine, bytes]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [{ name: 'a', url: replica.url, engine }] });
    const relay = async (pieces: readonly Buffer[]) => {
      replica.answer(answerStream(pieces));
      const response = await gateway.chat({ stream: true, n: 2 });
      const body = Buffer.from(await response.arrayBuffer());
      return { body, facts: lastingFactsOf(await gateway.nextRecord()) };
    };
    const whole = await relay([bytes]);
    expect(whole.facts).toMatchObject({ prompt_tokens: expect.any(Number), status: 200 });
    expect(whole.body.toString()).not.toContain('"choices":[],');

    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 40 }),
        async (places) => {
          const cut = await relay(cutAt(bytes, places));
          expect(cut.body.toString()).toBe(whole.body.toString());
          expect(cut.facts).toEqual(whole.facts);
        },
      ),
      { numRuns: runs(25) },
    );
  },
);
