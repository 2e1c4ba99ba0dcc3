import { expect, test } from 'vitest';
import { answerJson, type Script, startFakeReplica } from '#testkit/fake-replica.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { FORM_TYPE, formOf } from '#testkit/reading/form.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const PATH = '/v1/audio/transcriptions';
const config = { endpoints: ['audio/transcriptions'], timeouts: { upstream_keep_alive: '1h' } };
const FORM = postBytes(
  PATH,
  formOf([
    { name: 'model', value: 'm' },
    { name: 'file', value: Buffer.alloc(300 * 1024), filename: 'a.wav' },
  ]),
  [`Content-Type: ${FORM_TYPE}`],
);

/** Answers as soon as the head is there, and would keep the connection. */
const answerAtOnce: Script = async ({ raw }) =>
  raw('HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}');

test('a form that is answered before its end is never continued by the request of another client', async () => {
  await using replica = await startFakeReplica({ script: answerJson({ user: 'other' }) });
  await using gateway = await startGateway({ replicas: [replica], config });
  for (let round = 1; round <= 3; round++) {
    replica.answerOnce(answerAtOnce);
    using client = await RawConnection.open(gateway.url);
    client.write(FORM.subarray(0, 100 * 1024));
    const refused = await client.readResponse();
    expect([refused.status, refused.header('connection')]).toEqual([400, ['close']]);
    await replica.connections.at(-1)?.untilClosed();

    const other = await gateway.chat();
    expect(await other.json()).toEqual({ user: 'other' });
    expect(replica.requests.map(({ url }) => url).slice(-2)).toEqual([PATH, '/v1/chat/completions']);
    // The next round has a connection of its own: a form goes out on a new one only.
    expect(replica.requests.at(-1)?.connection).not.toBe(replica.requests.at(-2)?.connection);
  }
  expect((await gateway.waitForRecords(6)).map(({ status }) => status)).toEqual([
    400, 200, 400, 200, 400, 200,
  ]);
});

test('a form that takes longer than first_byte is served: that time begins when the replica has the form', async () => {
  await using replica = await startFakeReplica({ script: answerJson({ text: 'x' }) });
  await using late = await startFakeReplica({ name: 'late', list: { models: ['late'] }, script: () => {} });
  await using gateway = await startGateway({
    replicas: [replica, { name: 'late', url: late.url, models: ['late'] }],
    config: { ...config, timeouts: { first_byte: '200ms' } },
  });
  using client = await RawConnection.open(gateway.url);
  client.write(FORM.subarray(0, -10));
  await replica.nextRequest();
  // Twice the time passes: two requests that no one answers are given up, one after the other.
  for (let count = 0; count < 2; count++) expect((await gateway.chat({ model: 'late' })).status).toBe(504);

  client.write(FORM.subarray(-10));

  expect((await client.readResponse()).status).toBe(200);
});
