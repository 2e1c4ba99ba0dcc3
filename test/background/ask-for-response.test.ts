import { Pool } from 'undici';
import { expect, onTestFinished, test } from 'vitest';
import { type Script, startFakeReplica } from '#testkit/fake-replica.ts';
import { toReplicaConfig } from '#testkit/pool.ts';
import { askForResponse } from '../../src/background/ask-for-response.ts';

const MIB = 1024 ** 2;

/** Answers with a completed response of so many bytes, its status behind its output. */
const answer =
  (bytes: number): Script =>
  async (exchange) => {
    const [head, tail] = ['{"id":"resp_1","output":["', '"],"status":"completed"}'];
    await exchange.head(200, ['Content-Type', 'application/json']);
    await exchange.write(head);
    let rest = bytes - head.length - tail.length;
    for (const piece = Buffer.alloc(MIB, 0x78); rest > 0; rest -= MIB) {
      if (exchange.request.isAborted) return;
      await exchange.write(piece.subarray(0, rest));
    }
    exchange.end(tail);
  };

async function ask(script: Script) {
  const replica = await startFakeReplica();
  replica.answerProbes(script);
  const connections = new Pool(replica.url);
  onTestFinished(async () => {
    await connections.destroy();
    await replica.close();
  });
  return await askForResponse(
    { connections, pathPrefix: '', config: toReplicaConfig('a', ['m'], { url: replica.url }) },
    'resp_1',
  );
}

test('a long answer is read to its end', async () => {
  expect(await ask(answer(64 * MIB))).toEqual({
    kind: 'ended',
    fields: { finish_reasons: ['completed'], response_id: 'resp_1' },
  });
});

test('an answer that is too long says nothing', async () => {
  expect((await ask(answer(64 * MIB + 1))).kind).toBe('unclear');
});
