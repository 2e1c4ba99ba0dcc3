import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import { exchangeRaw, RawConnection } from '#testkit/raw-http.ts';
import type { HttpExchange } from '../../../src/wire/client/http-exchange.ts';
import type { RequestBodySink } from '../../../src/wire/client/request-body.ts';
import { ScriptedTime } from '../scripted-time.ts';
import { startHttp } from '../start-http.ts';

/** More than the buffers of two sockets hold. */
const HUGE = 'x'.repeat(32 * 1024 * 1024);
const SMUGGLED = 'GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n';

test('the rest of a body that was answered early is never read as a request', async () => {
  const targets: string[] = [];
  const sink: RequestBodySink = {
    onData: () => undefined,
    onEnd: () => undefined,
    onTimeout: () => undefined,
  };
  using http = await startHttp((exchange) => {
    targets.push(exchange.head.target);
    exchange.readBody(sink, 60_000);
    exchange.answer(200, 'text/plain', 'early');
  });
  using client = await RawConnection.open(http.url);
  client.write(`POST /first HTTP/1.1\r\nHost: x\r\nContent-Length: ${4 + SMUGGLED.length}\r\n\r\nbody`);
  expect((await client.readResponse()).body.toString()).toBe('early');

  client.write(SMUGGLED);

  expect((await client.readToClose()).toString()).toBe('');
  expect(targets).toEqual(['/first']);
});

test('the time for a body is over with the body: the answer may take longer', async () => {
  const time = new ScriptedTime();
  const whole = Promise.withResolvers<HttpExchange>();
  const handle = (exchange: HttpExchange) => {
    const onTimeout = () => whole.reject(new Error('the body is late'));
    exchange.readBody({ onData: () => undefined, onEnd: () => whole.resolve(exchange), onTimeout }, 1_000);
    client.write('dy');
  };
  using http = await startHttp(handle, {}, undefined, time);
  using client = await RawConnection.open(http.url);
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo');
  const exchange = await whole.promise;
  time.passTo(1_000_000);

  exchange.answer(200, 'text/plain', 'late');

  expect((await client.readResponse()).body.toString()).toBe('late');
});

test('a response that began before the listener stopped, and said keep-alive, is the last of its connection', async () => {
  const begun = Promise.withResolvers<HttpExchange>();
  using http = await startHttp((exchange) => {
    exchange.begin({ status: 200, reason: 'OK', fieldLines: '', contentLength: 4 });
    exchange.write([Buffer.from('bo')]);
    begun.resolve(exchange);
  });
  using client = await RawConnection.open(http.url);
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const exchange = await begun.promise;
  await client.untilBuffered('\r\n\r\nbo');

  http.server.stopAccepting();
  exchange.end([Buffer.from('dy')]);

  expect((await client.readToClose()).toString()).toMatch(
    /\r\nConnection: keep-alive\r\n(?:.+\r\n)*\r\nbody$/,
  );
});

test.each([
  ['nobody reads any more', 3_600_000],
  ['is late', 1_000],
])('a client that does not read the answer to a body that %s loses its connection', async (why, bodyMs) => {
  const time = new ScriptedTime();
  const begun = Promise.withResolvers<void>();
  const ends: string[] = [];
  const handle = (exchange: HttpExchange) => {
    exchange.onFinished = (end) => ends.push(end);
    const nothing = () => undefined;
    exchange.readBody({ onData: nothing, onEnd: nothing, onTimeout: nothing }, bodyMs);
    exchange.answer(200, 'text/plain', HUGE);
    if (why !== 'is late') exchange.stopReadingBody();
    begun.resolve();
  };
  using http = await startHttp(handle, { sendTimeoutMs: 60_000 }, undefined, time);
  using client = await RawConnection.open(http.url);
  client.socket.pause();
  client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo');
  await begun.promise;

  // Each time is given anew if the system has taken bytes: at some point its buffers are full.
  for (let minute = 1; minute <= 10 && ends.length === 0; minute++) {
    await setImmediate();
    time.passTo(minute * 61_000);
  }

  expect(ends).toEqual(['closed']);
});

test('a client that closes its side gets the rest of an answer that is complete', async () => {
  const bodies = [HUGE, 'another client'];
  using http = await startHttp((exchange) => exchange.answer(200, 'text/plain', bodies.shift() ?? ''));
  using client = await RawConnection.open(http.url);
  client.socket.pause();
  client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  await exchangeRaw(http.url, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  client.socket.end();
  // The server has seen the end when it answers somebody who came later.
  await exchangeRaw(http.url, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');

  client.socket.resume();

  expect(await client.readResponse()).toMatchObject({ status: 200, isComplete: true });
});

test('a client that sends requests faster than they are answered is read no faster than that', async () => {
  const answered = Promise.withResolvers<void>();
  let answerCount = 0;
  const handle = async (exchange: HttpExchange) => {
    await setImmediate();
    exchange.answer(200, 'text/plain', 'ok');
    if (++answerCount === 600) answered.resolve();
  };
  using http = await startHttp((exchange) => void handle(exchange));
  using client = await RawConnection.open(http.url);
  let isTaken = false;

  client.socket.write(Buffer.alloc(HUGE.length, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n'), () => {
    isTaken = true;
  });
  await answered.promise;

  // 600 requests are 17 KB. With each of them, 64 KiB could have been read.
  expect(isTaken).toBe(false);
});

test.each(['plain', 'encrypted'])(
  'an idle connection that is %s closes at once when the listener stops',
  async (kind) => {
    await using authority = await createAuthority();
    const certificate = kind === 'plain' ? undefined : await authority.issue('server');
    const idle = Promise.withResolvers<void>();
    const handle = (exchange: HttpExchange) => {
      exchange.onFinished = () => idle.resolve();
      exchange.answer(200, 'text/plain', 'ok');
    };
    using http = await startHttp(handle, {}, certificate);
    using client = await RawConnection.open(http.url, certificate && { ca: authority.ca.cert });
    client.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    expect((await client.readResponse()).header('connection')).toEqual(['keep-alive']);
    await idle.promise;

    http.server.stopAccepting();

    expect((await client.readToClose()).toString()).toBe('');
  },
);

describe('a body that is still coming while its answer goes out', () => {
  test('is late at its time, whether or not the client has taken what there is of the answer', async () => {
    const time = new ScriptedTime();
    const drained = Promise.withResolvers<void>();
    let isLate = false;
    const handle = (exchange: HttpExchange) => {
      const onTimeout = () => {
        isLate = true;
      };
      exchange.readBody({ onData: () => undefined, onEnd: () => undefined, onTimeout }, 1_000);
      exchange.begin({ status: 200, reason: 'OK', fieldLines: '', contentLength: 2 * HUGE.length });
      exchange.onDrain = () => drained.resolve();
      expect(exchange.write([Buffer.from(HUGE)])).toBe(false);
    };
    using http = await startHttp(handle, {}, undefined, time);
    using client = await RawConnection.open(http.url);
    client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nbo');
    await drained.promise;
    expect(isLate).toBe(false);

    time.passTo(1_500);

    expect(isLate).toBe(true);
  });

  test('may be as long as if it were the first of its connection that is not read', async () => {
    const bodies = ['ok', HUGE];
    using http = await startHttp(
      (exchange) => exchange.answer(200, 'text/plain', bodies.shift() ?? 'another client'),
      { maxDiscardedBytes: 10 },
    );
    using client = await RawConnection.open(http.url);
    client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n12345678');
    expect((await client.readResponse()).header('connection')).toEqual(['keep-alive']);
    client.socket.pause();
    client.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 30\r\n\r\n1');
    client.write('23456');
    // The server has read the six bytes when it answers somebody who came later.
    await exchangeRaw(http.url, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n');

    client.socket.resume();

    expect(await client.readResponse()).toMatchObject({ status: 200, isComplete: true });
  });
});
