import { Socket } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  answerJson,
  COMPLETION,
  chatChunk,
  partial,
  refusedUrlBeside,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { type WorkerThreads, watchWorkerThreads } from '#testkit/processes/worker-threads.ts';
import { exchangeRaw, postBytes, RawConnection, type RawResponse } from '#testkit/raw-http.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

const CHAT = postBytes('/v1/chat/completions', '{"model":"m"}');
const ERROR_LEVEL = 50;

/** What is thrown where nobody expects it. It must not be shown to anybody. */
const SECRET = 'canary of an unforeseen error';

/** Makes what gives requests their ids throw, once. Evaluated in worker threads, too: it uses nothing from outside. */
function failOnce(message: string): () => void {
  const crypto = process.getBuiltinModule('crypto');
  const { syncBuiltinESMExports } = process.getBuiltinModule('module');
  const { randomUUID } = crypto;
  const restore = () => {
    crypto.randomUUID = randomUUID;
    syncBuiltinESMExports();
  };
  crypto.randomUUID = () => {
    restore();
    throw new Error(message);
  };
  syncBuiltinESMExports();
  return restore;
}

/** Sabotages whoever serves: this thread, or each worker. */
async function sabotage(workers: number, { evaluate }: WorkerThreads): Promise<void> {
  if (workers === 1) {
    onTestFinished(failOnce(SECRET));
    return;
  }
  for (let index = 0; index < workers; index++) await evaluate(index, `(${failOnce})('${SECRET}')`);
}

/** A replica that waits for a word before it answers. */
function answerWhenTold(): { readonly script: Script; readonly tell: () => void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  const script: Script = async (exchange) => {
    await promise;
    await answerJson(COMPLETION)(exchange);
  };
  return { script, tell: resolve };
}

/** A 502 of ours, or a connection that is closed without an answer. */
function expectEnded(response: RawResponse): void {
  expect(response.status).toBeOneOf([0, 502]);
  expect(response.body.toString()).not.toContain(SECRET);
}

const errorsIn = ({ logLines }: StartedGateway) =>
  logLines.map((line) => JSON.parse(line) as { level: number }).filter(({ level }) => level >= ERROR_LEVEL);

describe.each([
  [1, 10_000],
  [2, 60_000],
])('an unforeseen error, with %i workers,', (workers, timeout) => {
  const start = (options: StartGatewayOptions) =>
    startGateway({ ...options, config: { ...options.config, gateway: { workers } } });

  test('in the handling of a request ends that request only, and is told', { timeout }, async () => {
    using threads = watchWorkerThreads();
    const { script, tell } = answerWhenTold();
    await using replica = await startFakeReplica({ script });
    await using gateway = await start({ replicas: [replica] });
    using opened = new DisposableStack();
    const waiting: RawConnection[] = [];
    for (let count = 0; count < 8; count++) {
      const client = opened.use(await RawConnection.open(gateway.url));
      client.write(CHAT);
      waiting.push(client);
    }
    await replica.untilRequests(8);

    await sabotage(workers, threads);
    const response = await exchangeRaw(gateway.url, CHAT);

    expectEnded(response);
    await gateway.untilLogged(`"level":${ERROR_LEVEL}`);
    expect(gateway.logLines.join('\n')).not.toContain(SECRET);
    expect(gateway.logLines.join('\n')).not.toContain('worker ended');
    tell();
    for (const client of waiting) expect((await client.readResponse()).status).toBe(200);
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
  });

  test('of whoever takes records costs no request anything, and is told', { timeout }, async () => {
    let failuresLeft = 1;
    await using replica = await startFakeReplica();
    await using gateway = await start({
      replicas: [replica],
      onRecord: () => {
        if (failuresLeft-- > 0) throw new Error(SECRET);
      },
    });

    expect((await exchangeRaw(gateway.url, CHAT)).status).toBe(200);
    await gateway.untilLogged(`"level":${ERROR_LEVEL}`);
    for (let count = 0; count < 4; count++) {
      expect((await exchangeRaw(gateway.url, CHAT)).status).toBe(200);
    }

    await gateway.waitForRecords(4);
    const { recorded = 0, exported = 0, queued = 0 } = await gateway.stats();
    expect(recorded).toBe(5);
    expect(exported + queued).toBe(5);
    expect(gateway.logLines.join('\n')).not.toContain(SECRET);
  });
});

describe('a log that throws', () => {
  test('at an attempt that failed costs one request at most, which has its record', async () => {
    let failuresLeft = 1;
    await using beside = await startFakeReplica({ name: 'beside' });
    const refusedUrl = refusedUrlBeside(beside);
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: refusedUrl }],
      onLogLine: (line) => {
        if (line.includes('"attempt failed"') && failuresLeft-- > 0) throw new Error(SECRET);
      },
    });

    const refused = await exchangeRaw(gateway.url, CHAT);
    expectEnded(refused);
    expect(await gateway.nextRecord()).toMatchObject({ status: 502 });
    const { hostname, port } = new URL(refusedUrl);
    await using _ = await startFakeReplica({ name: 'a', address: hostname, port: Number(port) });
    const back = await exchangeRaw(gateway.url, CHAT);
    expect(back.status).toBeOneOf([0, 200, 502]);
    expect((await gateway.nextRecord()).status).toBeOneOf([200, 499, 502]);

    expect(failuresLeft).toBe(0);
    expect((await exchangeRaw(gateway.url, CHAT)).status).toBe(200);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200 });
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
    expect(errorsIn(gateway)).not.toEqual([]);
    expect(gateway.logLines.join('\n')).not.toContain(SECRET);
  });
});

test('an unforeseen error at the end of a stream that broke off closes its connection, and frees the replica', async () => {
  const script = partial('text/event-stream', [chatChunk('Hel')], 'reset');
  await using replica = await startFakeReplica({ script });
  await using gateway = await startGateway({ replicas: [replica] });
  const { write } = Socket.prototype;
  const spy = vi.spyOn(Socket.prototype, 'write').mockImplementation(function (this: Socket, ...args) {
    if (String(args[0]).includes('upstream_failed')) throw new Error(SECRET);
    return write.apply(this, args as Parameters<typeof write>);
  });
  onTestFinished(() => spy.mockRestore());
  using client = await RawConnection.open(gateway.url);
  client.write(postBytes('/v1/chat/completions', '{"model":"m","stream":true}'));

  expect((await client.readResponse()).isComplete).toBe(false);

  expect(await gateway.nextRecord()).toMatchObject({
    status: 200,
    error_type: 'upstream_failed',
    truncated: true,
  });
  expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
  expect(errorsIn(gateway)).toHaveLength(1);
  expect(gateway.logLines.join('\n')).not.toContain(SECRET);
});
