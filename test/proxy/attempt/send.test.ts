import { describe, expect, test } from 'vitest';
import type { Finding } from '#replicas/reachability';
import type { AttemptRequest } from '../../../src/proxy/attempt/attempt.ts';
import { send } from '../../../src/proxy/attempt/send.ts';
import { Upload, type UploadSink } from '../../../src/proxy/attempt/upload.ts';
import { openExchange, SETTINGS, startReplica, toAttempt, untilAsked } from './one-request.ts';

const answer = (status: string, body: string, ...lines: readonly string[]) =>
  [`HTTP/1.1 ${status}`, `Content-Length: ${body.length}`, ...lines, '', body].join('\r\n');
const OK = answer('200 OK', 'ok');
const LOADING = '{"error":{"type":"unavailable_error","message":"Loading model"}}';

/** Starts a replica and sends it one request, which it answers with `OK`, so that a connection is kept. */
async function startUsed() {
  const started = await startReplica();
  const { exchange } = openExchange();
  const sent = send(toAttempt(exchange, started.replica).request, SETTINGS);
  const side = await started.server.next();
  await untilAsked(side);
  side.write(OK);
  expect(await sent).toEqual({ kind: 'relayed', statusCode: 200 });
  return { ...started, side };
}

describe('a replica that is drained', () => {
  test('while its connection opens gets nothing; the connection is kept for later', async () => {
    const { replica, pools, server } = await startReplica();
    const { exchange, written } = openExchange();
    const { request, steps } = toAttempt(exchange, replica);
    const sent = send(request, SETTINGS);
    pools.setDrained('a', true);
    expect(await sent).toEqual({ kind: 'drained' });
    expect([steps, written.items, exchange.isFinished]).toEqual([[], [], false]);
    const kept = replica.upstream.takeIdle();
    expect(kept?.isClosed).toBe(false);
    expect(kept?.exchangeCount).toBe(0);
    await server.next();
  });

  test('before a request goes out on a kept connection gets nothing, and keeps the connection', async () => {
    const { replica, pools } = await startUsed();
    const { exchange } = openExchange();
    const sent = send(toAttempt(exchange, replica).request, SETTINGS);
    expect(replica.upstream.takeIdle()).toBeNull();
    pools.setDrained('a', true);
    expect(await sent).toEqual({ kind: 'drained' });
    expect(replica.upstream.takeIdle()?.exchangeCount).toBe(1);
  });

  test('gets nothing of a client that leaves while its connection opens, which is kept too', async () => {
    const { replica, server } = await startReplica();
    const { exchange } = openExchange();
    const { request, steps } = toAttempt(exchange, replica);
    const sent = send(request, SETTINGS);
    exchange.http.finish('closed', 1);
    expect(await sent).toEqual({ kind: 'abandoned' });
    await server.next();
    while (replica.upstream.takeIdle() === null) await new Promise(setImmediate);
    expect(steps).toEqual([]);
  });
});

describe('a kept connection', () => {
  test('is used again, and is told to be reused; one that is asked for fresh is not', async () => {
    const { replica, side, server } = await startUsed();
    const again = toAttempt(openExchange().exchange, replica);
    const sent = send(again.request, SETTINGS);
    await untilAsked(side);
    side.write(OK);
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 200 });
    expect(again.steps).toEqual(['written on a reused one', 'response']);

    const fresh = toAttempt(openExchange().exchange, replica, { onFreshConnection: true });
    const freshlySent = send(fresh.request, SETTINGS);
    const other = await server.next();
    await untilAsked(other);
    other.write(OK);
    expect(await freshlySent).toEqual({ kind: 'relayed', statusCode: 200 });
    expect(fresh.steps).toEqual(['written', 'response']);
  });

  test('that the replica closed in the meantime is not used: the request goes out on a new one', async () => {
    const { replica, side, server } = await startUsed();
    const { exchange, written } = openExchange();
    const { request, steps } = toAttempt(exchange, replica);
    const idle = replica.upstream.takeIdle();
    if (idle === null) throw new Error('no connection was kept');
    replica.upstream.returnUnused(idle);
    const sent = send(request, SETTINGS);
    // As if the end of the connection had been read in the same turn.
    idle.destroy();
    const other = await server.next();
    await untilAsked(other);
    other.write(OK);
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 200 });
    expect(steps).toEqual(['written', 'response']);
    await written.until(() => written.items.join('').endsWith('\r\n\r\nok'));
    await side.untilClosed();
  });

  test('that is reset before the first byte is told apart from a new one, and from one with bytes', async () => {
    for (const [isReused, begin, kind] of [
      [true, '', 'reset_on_reuse'],
      [true, 'HTTP/1.1 2', 'failed'],
      [false, '', 'failed'],
    ] as const) {
      const {
        replica,
        server,
        side: first,
      } = isReused ? await startUsed() : { ...(await startReplica()), side: null };
      const sent = send(toAttempt(openExchange().exchange, replica).request, SETTINGS);
      const side = first ?? (await server.next());
      await untilAsked(side);
      side.socket.end(begin);
      expect(await sent).toMatchObject(kind === 'failed' ? { kind, code: 'upstream_failed' } : { kind });
    }
  });
});

describe('the request to a replica', () => {
  test('has its path, its host, its body and its length', async () => {
    const { replica, server } = await startReplica();
    const { exchange } = openExchange(['POST /v1/x?y HTTP/1.1', 'Host: client', 'X-A: b', 'X-Hidden: c']);
    const body = [Buffer.from('pi'), Buffer.from('ng')];
    const { request } = toAttempt(exchange, replica, { body });
    const sent = send(request, { ...SETTINGS, withheldFields: new Set(['x-hidden']) });
    const side = await server.next();
    const { host } = new URL(server.url);
    await side.untilReceived(
      `POST /base/v1/x?y HTTP/1.1\r\nHost: ${host}\r\nX-A: b\r\nX-Forwarded-For: 192.0.2.1\r\n`,
    );
    await side.untilReceived('Content-Length: 4\r\nVia: 1.1 gw\r\nX-Forwarded-Proto: http\r\n');
    await side.untilReceived('X-Request-Id: id-1\r\n');
    await side.untilReceived('\r\n\r\nping');
    // The body can be as large as memory allows: nothing keeps it after it was written.
    expect(request.body).toBeNull();
    side.write(OK);
    await sent;
  });

  test('without a body has no length', async () => {
    const { replica, server } = await startReplica();
    const sent = send(toAttempt(openExchange().exchange, replica).request, SETTINGS);
    const side = await server.next();
    await side.untilReceived('X-Forwarded-Host: client\r\nVia: ');
    side.write(OK);
    await sent;
  });
});

describe('a replica that cannot be reached', () => {
  test('is told with the cause, and leaves the exchange to other attempts', async () => {
    const { replica } = await startReplica({ refuses: true });
    const { exchange, written } = openExchange();
    const outcome = await send(toAttempt(exchange, replica).request, SETTINGS);
    expect(outcome).toMatchObject({ kind: 'not_connected', cause: { code: 'ECONNREFUSED' } });
    exchange.http.finish('closed', 1);
    expect(written.items).toEqual([]);
  });

  test('is not told of a client that left before', async () => {
    const { replica } = await startReplica({ refuses: true });
    const { exchange } = openExchange();
    const sent = send(toAttempt(exchange, replica).request, SETTINGS);
    exchange.http.finish('closed', 1);
    expect(await sent).toEqual({ kind: 'abandoned' });
  });
});

describe('a client that leaves', () => {
  test.each([
    ['before the head', '', { kind: 'abandoned' }],
    ['in the body', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart', { kind: 'relayed', statusCode: 200 }],
    ['in an answer that is held', 'HTTP/1.1 503 No\r\nContent-Length: 9\r\n\r\npart', { kind: 'abandoned' }],
  ])('%s of an answer ends the request to the replica', async (_, begin, outcome) => {
    const { replica, server } = await startReplica();
    const { exchange, written } = openExchange();
    const { request } = toAttempt(exchange, replica, { mayRetryStatus: true });
    const retry = { statuses: new Set([503]), attempts: 1 };
    const sent = send(request, { ...SETTINGS, retry });
    const side = await server.next();
    await untilAsked(side);
    side.write(begin);
    if (begin.includes('200')) await written.next();
    else if (begin !== '')
      while (replica.upstream.observeSilence().heardMs === null) await new Promise(setImmediate);
    exchange.http.finish('closed', 1);
    expect(await sent).toEqual(outcome);
    await side.untilClosed();
  });

  test('because its time is up gets an end of its stream, and 503 if nothing was sent', async () => {
    const { replica, server } = await startReplica();
    const stream = openExchange();
    const sent = send(toAttempt(stream.exchange, replica).request, SETTINGS);
    const side = await server.next();
    await untilAsked(side);
    side.write('HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n');
    await stream.written.next();
    stream.exchange.cut();
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 200 });
    expect(stream.exchange.ending).toBe('shutting_down');
    expect(stream.exchange.isFinished).toBe(true);
    await side.untilClosed();

    const silent = openExchange();
    const asked = send(toAttempt(silent.exchange, replica).request, SETTINGS);
    const other = await server.next();
    await untilAsked(other);
    silent.exchange.cut();
    expect(await asked).toEqual({ kind: 'abandoned' });
    expect(silent.http.text()).toMatch(/^HTTP\/1\.1 503 /);
    await other.untilClosed();
  });
});

describe('an answer that breaks off', () => {
  test.each([
    ['at its time', 'upstream_timeout'],
    ['because the replica closes', 'upstream_failed'],
  ] as const)('%s is told with what was sent', async (how, code) => {
    const { replica, server } = await startReplica();
    const { exchange, written } = openExchange();
    const settings = how === 'at its time' ? { ...SETTINGS, idleMs: 20 } : SETTINGS;
    const sent = send(toAttempt(exchange, replica).request, settings);
    const side = await server.next();
    await untilAsked(side);
    side.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart');
    await written.next();
    if (how !== 'at its time') side.socket.end();
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 200 });
    expect([exchange.ending, exchange.isTruncated, exchange.isFinished]).toEqual([code, true, true]);
  });

  test('before its head is a failure, by its time or by its break', async () => {
    const { replica, server } = await startReplica();
    const late = await send(toAttempt(openExchange().exchange, replica).request, {
      ...SETTINGS,
      firstByteMs: 20,
    });
    expect(late).toMatchObject({ kind: 'failed', code: 'upstream_timeout' });
    await server.next();
    const sent = send(toAttempt(openExchange().exchange, replica).request, SETTINGS);
    const side = await server.next();
    await untilAsked(side);
    side.write('nonsense\r\n\r\n');
    expect(await sent).toMatchObject({ kind: 'failed', code: 'upstream_failed' });
  });
});

describe('a status that is retried', () => {
  const retry = { statuses: new Set([503, 400]), attempts: 1 };
  const start = async (mayRetryStatus = true) => {
    const { replica, server, pools } = await startReplica();
    const opened = openExchange();
    const { request, steps } = toAttempt(opened.exchange, replica, { mayRetryStatus });
    const sent = send(request, { ...SETTINGS, retry });
    const side = await server.next();
    await untilAsked(side);
    return { ...opened, replica, server, pools, sent, side, steps };
  };

  test('is one that the policy names: without a policy there is none', async () => {
    const { replica, server } = await startReplica();
    const sent = send(
      toAttempt(openExchange().exchange, replica, { mayRetryStatus: true }).request,
      SETTINGS,
    );
    const side = await server.next();
    await untilAsked(side);
    side.write(answer('503 Later', 'no'));
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 503 });
  });

  test('and any other error goes to the client as it comes', async () => {
    const { sent, side, http, written } = await start();
    side.write('HTTP/1.1 500 No\r\nContent-Length: 4\r\n\r\npa');
    await written.until(() => http.text().endsWith('pa'));
    side.write('rt');
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 500 });
  });

  test('is held, and relayed on demand as it was', async () => {
    const { sent, side, written, http, steps, exchange } = await start();
    side.write(answer('503 Later', 'no', 'X-A: b'));
    const outcome = await sent;
    expect(outcome).toMatchObject({ kind: 'status_retried', statusCode: 503 });
    expect([written.items, steps]).toEqual([[], ['written']]);
    if (!('relayAnswer' in outcome)) throw new Error(outcome.kind);
    outcome.relayAnswer();
    await written.next();
    expect([exchange.ending, exchange.isTruncated]).toEqual([null, false]);
    expect(http.text()).toMatch(
      /^HTTP\/1\.1 503 Later\r\nX-A: b\r\n(?:.*\r\n)*Content-Length: 2\r\n(?:.*\r\n)*\r\nno$/,
    );
    expect(steps).toEqual(['written', 'response']);
  });

  test('is retried too if its answer breaks off, which then is what the client gets', async () => {
    const { sent, side, exchange, written } = await start();
    side.socket.end('HTTP/1.1 503 Later\r\nContent-Length: 9\r\n\r\npart');
    const outcome = await sent;
    expect(outcome).toMatchObject({ kind: 'status_retried', statusCode: 503 });
    expect(written.items).toEqual([]);
    if (!('relayAnswer' in outcome)) throw new Error(outcome.kind);
    outcome.relayAnswer();
    expect([exchange.ending, exchange.isTruncated]).toEqual(['upstream_failed', true]);
  });

  test('is relayed at once where it is longer than is held, in each of its pieces', async () => {
    const { sent, side, http, steps, written, replica, server } = await start();
    const body = 'x'.repeat(64 * 1024 - 1);
    side.write(`HTTP/1.1 503 Later\r\nContent-Length: ${body.length + 2}\r\n\r\n${body}`);
    // What another connection brings comes later.
    const later = send(toAttempt(openExchange().exchange, replica).request, SETTINGS);
    const other = await server.next();
    await untilAsked(other);
    other.write(OK);
    await later;
    expect(written.items).toEqual([]);
    side.write('y');
    await written.until(() => http.text().endsWith('xy'));
    expect(steps).toEqual(['written', 'response']);
    side.write('z');
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 503 });
    await written.until(() => http.text().endsWith(`\r\n\r\n${body}yz`));
  });

  test.each([
    ['another status', true, '500 No'],
    ['one that this attempt may not retry', false, '503 Later'],
    ['a success', true, '200 OK'],
  ])('is not %s', async (_, mayRetryStatus, status) => {
    const { sent, side, http, written } = await start(mayRetryStatus);
    side.write(answer(status, 'no'));
    expect(await sent).toEqual({ kind: 'relayed', statusCode: Number(status.slice(0, 3)) });
    await written.next();
    expect(http.text()).toContain(`HTTP/1.1 ${status}\r\n`);
  });

  test('is 503 of a llama.cpp that loads its model, whatever may be retried', async () => {
    const { replica, server, pools } = await startReplica();
    pools.registry.find('a')?.learn({ models: ['m'], engine: 'llamacpp' });
    pools.publish();
    const opened = openExchange();
    const sent = send(toAttempt(opened.exchange, replica).request, SETTINGS);
    const side = await server.next();
    await untilAsked(side);
    side.write(answer('503 Later', LOADING, 'Content-Type: application/json'));
    expect(await sent).toMatchObject({ kind: 'loading', statusCode: 503 });
    expect(opened.written.items).toEqual([]);
  });
});

describe('an attempt', () => {
  test.each([
    ['complete', answer('200 OK', 'ok'), ''],
    ['a stream that breaks off', 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n', 'end'],
  ])('is over when the answer is, also if the client takes longer: %s', async (_, bytes, how) => {
    const { replica, server } = await startReplica();
    const { exchange, written } = openExchange(undefined, { takesAll: false });
    const sent = send(toAttempt(exchange, replica).request, SETTINGS);
    const side = await server.next();
    await untilAsked(side);
    side.write(bytes);
    await written.next();
    if (how === 'end') side.socket.end();
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 200 });
    expect(exchange.isFinished).toBe(false);
  });

  test('of which the model loads is no sign that the replica works', async () => {
    const { replica, server, pools } = await startReplica();
    pools.registry.find('a')?.learn({ models: ['m'], engine: 'llamacpp' });
    pools.publish();
    pools.shared.health.configure({
      passive: true,
      active: false,
      failures: 2,
      coolDownMs: 0,
      frozenAfterMs: null,
      peers: null,
    });
    for (const isFailing of [false, true]) {
      const sent = send(
        toAttempt(openExchange().exchange, replica, { onFreshConnection: true }).request,
        SETTINGS,
      );
      const side = await server.next();
      await untilAsked(side);
      side.write(answer('503 No', LOADING, 'Content-Type: application/json'));
      expect(await sent).toMatchObject({ kind: 'loading' });
      replica.noteLoading();
      expect(replica.isFailing).toBe(isFailing);
    }
  });

  test('of which the model loads awaits nothing more of a long answer', async () => {
    const { replica, server, pools } = await startReplica();
    pools.registry.find('a')?.learn({ models: ['m'], engine: 'llamacpp' });
    pools.publish();
    const sent = send(toAttempt(openExchange().exchange, replica).request, SETTINGS);
    const side = await server.next();
    await untilAsked(side);
    const body = LOADING.padEnd(64 * 1024, ' ');
    side.write(`HTTP/1.1 503 No\r\nContent-Type: application/json\r\nContent-Length: 99999\r\n\r\n${body}`);
    expect(await sent).toMatchObject({ kind: 'loading', statusCode: 503 });
    await side.untilClosed();
  });
});

describe('a body that is sent as it comes', () => {
  /** An upload of which the test is the client. */
  async function startUpload() {
    const started = await startReplica();
    const opened = openExchange(['POST /v1/x HTTP/1.1', 'Host: client']);
    const client: { sink: UploadSink | null; steps: string[] } = { sink: null, steps: [] };
    const upload = new Upload(
      {
        readBody: (sink) => {
          client.sink = sink;
        },
        stopReadingBody: () => void client.steps.push('stop'),
        pauseReading: () => undefined,
        resumeReading: () => undefined,
      },
      { kind: 'length', bytes: 4 },
      { maxBytes: 100, timeoutMs: 1_000 },
    );
    const { request, steps } = toAttempt(opened.exchange, started.replica, {
      upload,
      onFreshConnection: true,
      mayRetryStatus: true,
    });
    const retry = { statuses: new Set([503]), attempts: 1 };
    const sent = send(request, { ...SETTINGS, retry });
    const side = await started.server.next();
    await side.untilReceived('Content-Length: 4\r\n');
    await untilAsked(side);
    return { ...started, ...opened, client, sent, side, steps };
  }

  test('goes out in its pieces, and its connection is kept', async () => {
    const { client, sent, side, replica, steps, exchange } = await startUpload();
    client.sink?.onData(Buffer.from('pi'));
    await side.untilReceived('pi');
    expect(steps).toEqual([]);
    client.sink?.onData(Buffer.from('ng'));
    client.sink?.onEnd();
    await side.untilReceived('ng');
    side.write(OK);
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 200 });
    expect([steps, client.steps, exchange.http.isLast]).toEqual([['written', 'response'], [], false]);
    expect(replica.upstream.takeIdle()).not.toBeNull();
  });

  test('is not repeated: an answer that would be retried is relayed, and the rest is not read', async () => {
    const { client, sent, side, exchange, http, written } = await startUpload();
    side.write(answer('503 Later', 'no'));
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 503 });
    await written.until(() => http.text().endsWith('no'));
    expect([client.steps, exchange.http.isLast, http.isKept]).toEqual([['stop'], true, false]);
    client.sink?.fail('request_timeout');
    expect([exchange.ending, exchange.isTruncated]).toEqual([null, false]);
  });

  test('is not repeated where the model loads either', async () => {
    const { sent, side, pools } = await startUpload();
    pools.registry.find('a')?.learn({ models: ['m'], engine: 'llamacpp' });
    pools.publish();
    side.write(answer('503 No', LOADING, 'Content-Type: application/json'));
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 503 });
  });

  test('that cannot be sent to its end closes the connection, and is a failure before an answer', async () => {
    const { client, sent, side, exchange } = await startUpload();
    client.sink?.onData(Buffer.alloc(101));
    expect(await sent).toEqual({ kind: 'failed', code: 'request_too_large', cause: null });
    client.sink?.fail('request_timeout');
    expect([client.steps, exchange.isFinished]).toEqual([['stop'], false]);
    await side.untilClosed();
  });

  test('that cannot be sent to its end breaks off an answer that has begun', async () => {
    const { client, sent, side, exchange, written } = await startUpload();
    side.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\npart');
    await written.next();
    client.sink?.fail('request_timeout');
    expect(await sent).toEqual({ kind: 'relayed', statusCode: 200 });
    expect([exchange.ending, exchange.isTruncated, exchange.isFinished]).toEqual([
      'request_timeout',
      true,
      true,
    ]);
    await side.untilClosed();
  });

  test('is told of a replica that leaves once, also if the client goes on', async () => {
    const { client, sent, side } = await startUpload();
    side.socket.end();
    expect(await sent).toMatchObject({ kind: 'failed', code: 'upstream_failed' });
    client.sink?.onData(Buffer.alloc(101));
    client.sink?.onTimeout();
    expect(client.steps).toEqual(['stop']);
  });
});

describe('what an answer says of its replica', () => {
  /** Enough of a reading for an answer that is not read, with something inserted that must be undone, or without. */
  const reading = (undo: object | null) =>
    ({ undo, onResponseId: null, endpoint: {} }) as unknown as AttemptRequest['reading'];

  const ask = async (bytes: string, changes: Partial<AttemptRequest> = {}, known?: Finding) => {
    const { replica, server, pools } = await startReplica();
    const { reachability } = pools.shared;
    if (known !== undefined) reachability.note(replica.slot, known);
    const { exchange } = openExchange();
    const retry = { statuses: new Set([503]), attempts: 1 };
    const sent = send(toAttempt(exchange, replica, changes).request, { ...SETTINGS, retry });
    const side = await server.next();
    await untilAsked(side);
    side.write(bytes);
    const outcome = await sent;
    return { outcome, replica, side, finding: reachability.findingOf(replica.slot) };
  };

  test.each([
    ['200 OK', null],
    ['200 OK', reading(null)],
    ['500 No', reading(null)],
  ])('is noted: %s', async (status, read) => {
    const { replica, outcome } = await ask(answer(status, 'ok', 'Content-Encoding: gzip'), { reading: read });
    expect(outcome.kind).toBe('relayed');
    expect(replica.hasAnswered).toBe(true);
  });

  test.each([
    ['is relayed after it was held', answer('400 No', 'no'), { reading: reading({}) }],
    ['is retried', answer('503 No', 'no'), { mayRetryStatus: true }],
  ])('is noted where it %s', async (_, bytes, changes) => {
    expect((await ask(bytes, changes)).replica.hasAnswered).toBe(true);
  });

  test.each([
    ['a request for inference does', reading(null), 'reachable'],
    ['another request does not', null, 'not_an_engine'],
  ])('is that it is an engine: %s', async (_, read, expected) => {
    const bytes = answer('200 OK', 'ok', 'Content-Encoding: gzip');
    const { finding } = await ask(bytes, { reading: read }, 'not_an_engine');
    expect(finding).toBe(expected);
  });

  test.each([
    ['relayed after it was held', '400 No', 'reachable'],
    ['an error of the engine that is held', '503 No', 'engine_failed'],
  ])('is that it works again, where it is %s', async (_, status, expected) => {
    const changes = { reading: reading({}), mayRetryStatus: status.startsWith('503') };
    expect((await ask(answer(status, 'no'), changes, 'engine_failed')).finding).toBe(expected);
  });

  test('is that it refuses our option, by the first part of a long answer too, whose rest is not awaited', async () => {
    const body = 'stream_options'.padEnd(64 * 1024, ' ');
    const { outcome, side } = await ask(`HTTP/1.1 400 No\r\nContent-Length: 99999\r\n\r\n${body}`, {
      reading: reading({}),
    });
    expect(outcome).toEqual({ kind: 'usage_refused', statusCode: 400 });
    await side.untilClosed();
  });

  test('is not that it refuses an option which we did not insert', async () => {
    const { outcome } = await ask(answer('400 No', 'stream_options'), { reading: reading(null) });
    expect(outcome).toEqual({ kind: 'relayed', statusCode: 400 });
  });

  test.each([
    ['a stream that is compressed', 'text/event-stream', 'gzip', {}, true],
    ['a stream that is not', 'text/event-stream', 'identity', {}, false],
    ['another answer that is', 'text/plain', 'gzip', {}, false],
    ['a stream that is compressed, of a client that asked itself', 'text/event-stream', 'gzip', null, false],
  ])('is whether our option can be undone: %s', async (_, type, coding, undo, refuses) => {
    const read = coding === 'gzip' ? reading(undo) : null;
    const { replica } = await ask(
      answer('200 OK', 'ok', `Content-Type: ${type}`, `Content-Encoding: ${coding}`),
      {
        reading: read,
      },
    );
    expect(replica.refusesIncludeUsage).toBe(refuses);
  });
});
