import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import { EventLog } from '#testkit/event-log.ts';
import { exchangeRaw, RawConnection } from '#testkit/raw-http.ts';
import type { HttpExchange } from '../../../src/wire/client/http-exchange.ts';
import type { RequestBodySink } from '../../../src/wire/client/request-body.ts';
import { ScriptedTime } from '../scripted-time.ts';
import { startHttp } from '../start-http.ts';

const GET = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
const post = (length: number, ...lines: readonly string[]) =>
  `POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n${lines.map((line) => `${line}\r\n`).join('')}\r\n`;
const ok = (exchange: HttpExchange) => exchange.answer(200, 'text/plain', exchange.head.target);
const nothing = () => undefined;
const SILENT_SINK: RequestBodySink = { onData: nothing, onEnd: nothing, onTimeout: nothing };

/** A handler that keeps its exchanges, with the ends of those. */
function keepExchanges() {
  const exchanges = new EventLog<HttpExchange>();
  const ends = new EventLog<string>();
  const handle = (exchange: HttpExchange) => {
    exchange.onFinished = (end) => ends.push(end);
    exchanges.push(exchange);
  };
  return { exchanges, ends, handle };
}

/** The server has read what was sent before: it answers somebody who came later. */
const untilRead = async (url: string) =>
  void (await exchangeRaw(url, 'GET /later HTTP/1.1\r\nHost: x\r\n\r\n'));

describe('a connection takes one request after another', () => {
  test.each(['at once', 'later'])('from one read, where each is answered %s', async (when) => {
    const targets: string[] = [];
    using http = await startHttp((exchange) => {
      targets.push(exchange.head.target);
      if (when === 'at once') ok(exchange);
      else setImmediate(() => ok(exchange));
    });
    using client = await RawConnection.open(http.url);
    client.write('GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\nGET /c HTTP/1.1\r\n');
    for (const target of ['/a', '/b']) expect((await client.readResponse()).body.toString()).toBe(target);
    client.write('Host: x\r\n\r\n');
    expect((await client.readResponse()).body.toString()).toBe('/c');
    expect(targets).toEqual(['/a', '/b', '/c']);
    expect(http.defects).toEqual([]);
  });

  test('of thousands that are answered at once, from one read', async () => {
    using http = await startHttp(ok);
    using client = await RawConnection.open(http.url);
    client.write(GET.repeat(5_000));
    for (let count = 0; count < 5_000; count++) expect((await client.readResponse()).status).toBe(200);
    expect(http.defects).toEqual([]);
  });

  test('that is in pieces of one byte', async () => {
    using http = await startHttp(ok);
    using client = await RawConnection.open(http.url);
    client.socket.setNoDelay(true);
    for (const byte of `${GET}GET /b HTTP/1.1\r\nHost: x\r\n\r\n`) {
      client.write(byte);
      await untilRead(http.url);
    }
    expect((await client.readResponse()).body.toString()).toBe('/');
    expect((await client.readResponse()).body.toString()).toBe('/b');
  });

  test('after a body that nobody wanted, if it had come', async () => {
    using http = await startHttp(ok);
    using client = await RawConnection.open(http.url);
    for (const rest of ['', 'GET /b HTTP/1.1\r\nHost: x\r\n\r\n']) client.write(`${post(4)}body${rest}`);
    for (const target of ['/', '/', '/b']) expect((await client.readResponse()).body.toString()).toBe(target);
  });

  test('after a body that was read, of which the end came with the next request', async () => {
    const bodies: string[] = [];
    using http = await startHttp((exchange) => {
      let body = '';
      exchange.readBody(
        {
          onData: (view) => {
            body += view.toString();
          },
          onEnd: () => {
            bodies.push(body);
            ok(exchange);
          },
          onTimeout: nothing,
        },
        60_000,
      );
    });
    using client = await RawConnection.open(http.url);
    client.write(`${post(4)}bo`);
    await untilRead(http.url);
    client.write(`dyGET /b HTTP/1.1\r\nHost: x\r\n\r\n`);
    expect((await client.readResponse()).body.toString()).toBe('/');
    expect((await client.readResponse()).body.toString()).toBe('/b');
    expect(bodies.filter((body) => body !== '')).toEqual(['body']);
  });
});

describe('what is said of keeping the connection', () => {
  test.each([
    [500, []],
    [1_000, ['timeout=1']],
    [2_900, ['timeout=2']],
  ])('is the time for which it is kept, in whole seconds: %i ms', async (keepAliveMs, expected) => {
    using http = await startHttp(ok, { keepAliveMs });
    const answer = await exchangeRaw(http.url, GET);
    expect(answer.header('keep-alive')).toEqual(expected);
    expect(answer.header('connection')).toEqual(['keep-alive']);
  });

  test.each([
    ['the client says so', 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n'],
    ['the client is of HTTP/1.0', 'GET / HTTP/1.0\r\n\r\n'],
    ['nobody claimed a body that is too long to be discarded', `${post(30)}${'x'.repeat(11)}`],
  ])('is that it closes, where %s; and it does', async (_, request) => {
    using http = await startHttp(ok, { maxDiscardedBytes: 10 });
    using client = await RawConnection.open(http.url);
    client.write(request);
    const answer = await client.readResponse();
    expect(answer.header('connection')).toEqual(['close']);
    expect(answer.body.toString()).toBe('/');
    await client.readToClose();
  });

  test('is that it closes once the listener is about to', async () => {
    using http = await startHttp(ok);
    using client = await RawConnection.open(http.url);
    client.write(GET);
    expect((await client.readResponse()).header('connection')).toEqual(['keep-alive']);
    http.server.startClosing();
    client.write(GET);
    expect((await client.readResponse()).header('connection')).toEqual(['close']);
    await client.readToClose();
  });

  test('holds although a part of the next request came before the listener was about to close', async () => {
    using http = await startHttp(ok);
    using client = await RawConnection.open(http.url);
    client.write(GET);
    await client.readResponse();
    client.write(GET.slice(0, 5));
    await untilRead(http.url);
    http.server.stopAccepting();
    client.write(GET.slice(5));
    expect((await client.readResponse()).status).toBe(200);
    await client.readToClose();
  });
});

describe('time', () => {
  test('closes a connection on which nothing ever comes, without a word', async () => {
    const time = new ScriptedTime();
    using http = await startHttp(ok, { keepAliveMs: 1_000 }, undefined, time);
    using client = await RawConnection.open(http.url);
    // The clock runs as long as there is a connection.
    while (time.timers.size === 0) await new Promise(setImmediate);
    time.passTo(999);
    expect(time.timers.size).toBe(1);
    time.passTo(1_000);
    expect((await client.readToClose()).toString()).toBe('');
    expect(time.timers.size).toBe(0);
  });

  test('closes a connection after its last response, and no sooner', async () => {
    const time = new ScriptedTime();
    const { exchanges, ends, handle } = keepExchanges();
    using http = await startHttp(handle, { keepAliveMs: 1_000 }, undefined, time);
    using client = await RawConnection.open(http.url);
    client.write(GET);
    const exchange = await exchanges.next();
    time.passTo(5_000);
    ok(exchange);
    await ends.next();
    await client.readResponse();
    time.passTo(5_999);
    client.write(GET);
    ok(await exchanges.next());
    await ends.next();
    expect((await client.readResponse()).status).toBe(200);
    time.passTo(6_999);
    expect((await client.readToClose()).toString()).toBe('');
  });

  test('answers a head that is not complete in time', async () => {
    const time = new ScriptedTime();
    using http = await startHttp(ok, { keepAliveMs: 60_000, headTimeoutMs: 1_000 }, undefined, time);
    using client = await RawConnection.open(http.url);
    client.write(GET);
    await client.readResponse();
    time.passTo(2_000);
    client.write('GET / HT');
    const answered = client.readResponse();
    // Each request of another client moves the clock; the first byte of the head has been read by then.
    await untilRead(http.url);
    client.write('TP');
    await untilRead(http.url);
    time.passTo(2_999);
    expect(client.isClosed).toBe(false);
    time.passTo(3_000);
    const answer = await answered;
    expect(answer).toMatchObject({ status: 408, isComplete: true });
    expect(JSON.parse(answer.body.toString())).toMatchObject({ error: { code: 'request_timeout' } });
    expect((await client.readToClose()).toString()).toBe('');
  });

  test('closes a connection with one line end on it, and no request, without a word', async () => {
    const time = new ScriptedTime();
    using http = await startHttp(ok, { headTimeoutMs: 1_000 }, undefined, time);
    using client = await RawConnection.open(http.url);
    client.write('\r\n');
    await untilRead(http.url);
    time.passTo(1_000);
    expect((await client.readToClose()).toString()).toBe('');
  });

  test('ends the wait for a client that does not close after the last response', async () => {
    const time = new ScriptedTime();
    using http = await startHttp(ok, {}, undefined, time);
    using client = await RawConnection.open(http.url);
    client.write('GET / HTTP/1.0\r\n\r\n');
    await client.readToClose();
    time.passTo(4_999);
    // The clock runs as long as there is a connection.
    expect(time.timers.size).toBe(1);
    time.passTo(5_000);
    expect(time.timers.size).toBe(0);
  });

  test('does not end a request that has no body, however long its answer takes', async () => {
    const time = new ScriptedTime();
    const { exchanges, handle } = keepExchanges();
    using http = await startHttp(handle, { headTimeoutMs: 1_000, keepAliveMs: 1_000 }, undefined, time);
    using client = await RawConnection.open(http.url);
    client.write(GET);
    const exchange = await exchanges.next();
    time.passTo(1_000_000);
    ok(exchange);
    expect((await client.readResponse()).status).toBe(200);
  });

  test('of the head of a pipelined request begins when its turn comes', async () => {
    const time = new ScriptedTime();
    const { exchanges, handle } = keepExchanges();
    using http = await startHttp(handle, { headTimeoutMs: 1_000 }, undefined, time);
    using client = await RawConnection.open(http.url);
    client.write(`${GET}GET /b`);
    const exchange = await exchanges.next();
    time.passTo(10_000);
    ok(exchange);
    await client.readResponse();
    time.passTo(10_999);
    client.write(' HTTP/1.1\r\nHost: x\r\n\r\n');
    ok(await exchanges.next());
    expect((await client.readResponse()).body.toString()).toBe('/b');

    client.write('GET');
    await untilReadOf(exchanges, http.url);
    time.passTo(12_000);
    expect((await client.readResponse()).status).toBe(408);
  });
});

/** As `untilRead`, where the test answers. */
async function untilReadOf(exchanges: EventLog<HttpExchange>, url: string): Promise<void> {
  const read = untilRead(url);
  ok(await exchanges.next());
  await read;
}

describe('a request that the connection answers itself', () => {
  test.each([
    ['is not HTTP', 'GET\r\n\r\n', 400],
    ['is not HTTP before its end', 'GET /\0', 400],
    ['is not HTTP in its first byte', '\0', 400],
    ['has a head that is too long', `GET / HTTP/1.1\r\nX: ${'x'.repeat(100)}\r\n\r\n`, 431],
    ['wants a tunnel', 'CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n', 404],
    [
      'has a body that is not HTTP',
      'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n',
      400,
    ],
  ])('because it %s is the last of its connection', async (_, request, status) => {
    const { exchanges, ends, handle } = keepExchanges();
    using http = await startHttp(
      (exchange) => {
        handle(exchange);
        exchange.readBody(SILENT_SINK, 60_000);
      },
      { maxHeadBytes: 64 },
    );
    using client = await RawConnection.open(http.url);
    client.write(request);
    client.write(GET);
    const answer = await client.readResponse();
    expect(answer).toMatchObject({ status, isComplete: true });
    expect(answer.header('connection')).toEqual(['close']);
    const codes = { 400: 'bad_request', 404: 'not_found', 431: 'headers_too_large' };
    expect(JSON.parse(answer.body.toString())).toMatchObject({
      error: { type: 'invalid_request_error', code: codes[status as keyof typeof codes] },
    });
    expect(exchanges.items).toHaveLength(request.startsWith('POST') ? 1 : 0);
    expect((await client.readToClose()).toString()).toBe('');
    expect(ends.items).toEqual(request.startsWith('POST') ? ['malformed'] : []);
    expect(http.defects).toEqual([]);
  });

  test('has no second answer: a body that turns out broken after the first one began cuts the connection', async () => {
    const { ends, handle } = keepExchanges();
    using http = await startHttp((exchange) => {
      handle(exchange);
      exchange.readBody(SILENT_SINK, 60_000);
      exchange.begin({ status: 200, reason: 'OK', fieldLines: '', contentLength: 10 });
      exchange.write([Buffer.from('begin')]);
    });
    using client = await RawConnection.open(http.url);
    client.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
    await client.untilBuffered('begin');
    client.write('z\r\n');
    expect(await client.readResponse()).toMatchObject({ status: 200, isComplete: false });
    expect(ends.items).toEqual(['closed']);
  });

  test('is not followed by a part of its body that is read as a request', async () => {
    using http = await startHttp(ok);
    using client = await RawConnection.open(http.url);
    client.write('GET\r\n\r\n');
    expect((await client.readResponse()).status).toBe(400);
    client.write(GET.repeat(10));
    expect((await client.readToClose()).toString()).toBe('');
  });
});

describe('the body of a request', () => {
  test.each([
    ['has not come', '', true],
    ['has come', 'body', true],
  ])('is asked for with 100 where the client waits for that, also if it %s', async (_, begin, isAsked) => {
    using http = await startHttp((exchange) =>
      exchange.readBody({ ...SILENT_SINK, onEnd: () => ok(exchange) }, 60_000),
    );
    using client = await RawConnection.open(http.url);
    client.write(`${post(4, 'Expect: 100-continue')}${begin}`);
    expect((await client.readResponse()).status).toBe(isAsked ? 100 : 200);
    client.write('body'.slice(begin.length));
    expect((await client.readResponse()).status).toBe(200);
  });

  test.each([
    ['there is none', `GET / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n`],
    ['the client does not wait for that', `${post(4)}body`],
  ])('is not asked for where %s', async (_, request) => {
    using http = await startHttp((exchange) =>
      exchange.readBody({ ...SILENT_SINK, onEnd: () => void setImmediate(() => ok(exchange)) }, 60_000),
    );
    expect((await exchangeRaw(http.url, request)).status).toBe(200);
  });

  test('is late at its time, and may be answered then; the rest is not read as a request', async () => {
    const time = new ScriptedTime();
    const { exchanges, handle } = keepExchanges();
    using http = await startHttp(
      (exchange) => {
        handle(exchange);
        exchange.readBody(
          { ...SILENT_SINK, onTimeout: () => exchange.answer(408, 'text/plain', 'late') },
          1_000,
        );
      },
      {},
      undefined,
      time,
    );
    using client = await RawConnection.open(http.url);
    client.write(`${post(4 + GET.length)}body`);
    const exchange = await exchanges.next();
    time.passTo(999);
    expect(exchange.isAnswered).toBe(false);
    time.passTo(1_000);
    const answer = await client.readResponse();
    expect([answer.status, answer.header('connection')]).toEqual([408, ['close']]);
    client.write(GET);
    expect((await client.readToClose()).toString()).toBe('');
    expect(exchanges.items).toHaveLength(1);
  });

  test.each(['before', 'after'])(
    'that is discarded %s the answer cuts the connection where more comes than is discarded',
    async (when) => {
      const { exchanges, ends, handle } = keepExchanges();
      using http = await startHttp(handle, { maxDiscardedBytes: 10 });
      using client = await RawConnection.open(http.url);
      client.write(`${post(1_000_000)}${'x'.repeat(10)}`);
      const exchange = await exchanges.next();
      if (when === 'before') {
        exchange.discardBody();
        exchange.discardBody();
      }
      ok(exchange);
      expect((await client.readResponse()).header('connection')).toEqual(['close']);
      expect(ends.items).toEqual(['sent']);
      // Only one who writes to a closed connection sees that it is.
      while (!client.socket.destroyed) {
        client.write('x');
        await untilReadOf(exchanges, http.url);
      }
    },
  );

  test('that is discarded before its answer is read no further than that', async () => {
    const { exchanges, handle } = keepExchanges();
    using http = await startHttp(handle, { maxDiscardedBytes: 1_000 });
    using client = await RawConnection.open(http.url);
    client.write(post(64 * 1024 * 1024));
    const exchange = await exchanges.next();
    exchange.discardBody();
    let isTaken = false;
    client.socket.write(Buffer.alloc(64 * 1024 * 1024), () => {
      isTaken = true;
    });
    for (let turn = 0; turn < 5; turn++) await untilReadOf(exchanges, http.url);
    expect(isTaken).toBe(false);
    ok(exchange);
    expect((await client.readResponse()).status).toBe(200);
  });

  test('that there is none of is not discarded: the connection is kept', async () => {
    using http = await startHttp((exchange) => {
      exchange.discardBody();
      ok(exchange);
    });
    expect((await exchangeRaw(http.url, GET)).header('connection')).toEqual(['keep-alive']);
  });

  test('that is longer than the input of a connection, and is claimed late, is read to its end', async () => {
    const { exchanges, handle } = keepExchanges();
    using http = await startHttp(handle);
    using client = await RawConnection.open(http.url);
    const body = 'x'.repeat(1024 * 1024);
    client.write(post(body.length) + body);
    const exchange = await exchanges.next();
    await untilReadOf(exchanges, http.url);
    await untilReadOf(exchanges, http.url);
    let sizeBytes = 0;
    const onData = (view: Buffer) => {
      sizeBytes += view.length;
    };
    exchange.readBody({ ...SILENT_SINK, onData, onEnd: () => ok(exchange) }, 60_000);
    expect((await client.readResponse()).status).toBe(200);
    expect(sizeBytes).toBe(body.length);
  });

  test.each([
    ['to its end', `${post(4)}body`],
    [
      'up to a part that is not HTTP',
      'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\nz\r\n',
    ],
  ])(
    'that was answered at its first byte tells its sink nothing more, also if it came %s',
    async (_, request) => {
      const { ends, handle } = keepExchanges();
      const told: string[] = [];
      using http = await startHttp((exchange) => {
        handle(exchange);
        exchange.readBody(
          {
            onData: () => ok(exchange),
            onEnd: () => void told.push('end'),
            onTimeout: () => void told.push('timeout'),
          },
          60_000,
        );
      });
      using client = await RawConnection.open(http.url);
      client.write(request);
      expect((await client.readResponse()).status).toBe(200);
      await client.readToClose();
      expect([told, ends.items, http.defects]).toEqual([[], ['sent'], []]);
    },
  );

  test('that is discarded may be as long as the limit, in each request anew', async () => {
    using http = await startHttp(ok, { maxDiscardedBytes: 10 });
    using client = await RawConnection.open(http.url);
    for (let round = 0; round < 3; round++) {
      client.write(`${post(10)}${'x'.repeat(10)}`);
      expect((await client.readResponse()).header('connection')).toEqual(['keep-alive']);
    }
  });

  test('that comes faster than it is passed on waits in the socket', async () => {
    const { exchanges, handle } = keepExchanges();
    const sizes = new EventLog<number>();
    using http = await startHttp(handle);
    using client = await RawConnection.open(http.url);
    const body = 'x'.repeat(8 * 1024 * 1024);
    client.write(post(body.length));
    const exchange = await exchanges.next();
    exchange.readBody(
      {
        ...SILENT_SINK,
        onData: (view) => {
          exchange.pauseReading();
          sizes.push(view.length);
        },
        onEnd: () => ok(exchange),
      },
      60_000,
    );
    client.write(body);
    await sizes.next();
    await untilReadOf(exchanges, http.url);
    expect(sizes.items).toHaveLength(1);
    const resumed = async () => {
      for (;;) {
        exchange.resumeReading();
        await sizes.next();
      }
    };
    void resumed();
    expect((await client.readResponse()).status).toBe(200);
    expect(sizes.items.reduce((sum, size) => sum + size, 0)).toBe(body.length);
  });

  test('is read on after other sockets had their turn', async () => {
    const { exchanges, handle } = keepExchanges();
    using http = await startHttp(handle);
    using client = await RawConnection.open(http.url);
    client.write(post(4));
    const exchange = await exchanges.next();
    const texts = new EventLog<string>();
    exchange.readBody(
      { ...SILENT_SINK, onData: (view) => texts.push(view.toString()), onEnd: () => ok(exchange) },
      60_000,
    );
    exchange.yieldToOtherSockets();
    exchange.yieldToOtherSockets();
    client.write('body');
    expect(await texts.next()).toBe('body');
    expect((await client.readResponse()).status).toBe(200);
  });

  test('of a client that pauses it for somebody else is not read on by a yield', async () => {
    const { exchanges, handle } = keepExchanges();
    using http = await startHttp(handle);
    using client = await RawConnection.open(http.url);
    client.write(post(4));
    const exchange = await exchanges.next();
    const texts = new EventLog<string>();
    exchange.readBody({ ...SILENT_SINK, onData: (view) => texts.push(view.toString()) }, 60_000);
    exchange.pauseReading();
    exchange.yieldToOtherSockets();
    client.write('body');
    await untilReadOf(exchanges, http.url);
    expect(texts.items).toEqual([]);
    exchange.resumeReading();
    expect(await texts.next()).toBe('body');
  });
});

describe('a client that leaves', () => {
  test.each(['closes its side', 'resets the connection'])(
    'because it %s ends its exchange at once',
    async (how) => {
      const { exchanges, ends, handle } = keepExchanges();
      using http = await startHttp(handle);
      using client = await RawConnection.open(http.url);
      client.write(GET);
      const exchange = await exchanges.next();
      if (how === 'closes its side') client.socket.end();
      else client.socket.resetAndDestroy();
      expect(await ends.next()).toBe('closed');
      expect(exchange.isFinished).toBe(true);
      ok(exchange);
      expect(exchange.write([Buffer.from('late')])).toBe(true);
      expect(http.defects).toEqual([]);
    },
  );

  test('with another request on its way ends its exchange too', async () => {
    const { exchanges, ends, handle } = keepExchanges();
    using http = await startHttp(handle);
    using client = await RawConnection.open(http.url);
    client.write(GET);
    await exchanges.next();
    client.write(GET);
    client.socket.end();
    expect(await ends.next()).toBe('closed');
  });

  test('before it has sent a request is closed too', async () => {
    const time = new ScriptedTime();
    using http = await startHttp(ok, {}, undefined, time);
    using client = await RawConnection.open(http.url);
    await untilRead(http.url);
    expect(time.timers.size).toBe(1);
    const closed = once(client.socket.resume(), 'close');
    client.socket.end();
    await closed;
    expect(time.timers.size).toBe(0);
  });

  test('after the response is read to its end, and then closed', async () => {
    using http = await startHttp(ok);
    using client = await RawConnection.open(http.url);
    client.write('GET / HTTP/1.0\r\n\r\n');
    await client.readResponse();
    const closed = once(client.socket.resume(), 'close');
    client.socket.end();
    await closed;
  });
});

describe('a defect of ours', () => {
  test.each(['in the handler', 'in the sink'])(
    '%s is reported, and ends this connection only',
    async (where) => {
      const defect = new Error('a defect');
      const fail = () => {
        throw defect;
      };
      const { ends, handle } = keepExchanges();
      using http = await startHttp((exchange) => {
        if (exchange.head.target === '/later') return ok(exchange);
        handle(exchange);
        if (where === 'in the handler') fail();
        exchange.readBody({ ...SILENT_SINK, onData: fail }, 60_000);
      });
      using client = await RawConnection.open(http.url);
      client.write(`${post(4)}body`);
      expect((await client.readToClose()).toString()).toBe('');
      expect(http.defects).toEqual([defect]);
      expect(ends.items).toEqual(['closed']);
      await untilRead(http.url);
    },
  );

  test('when the time of a body is over is reported too', async () => {
    const time = new ScriptedTime();
    const defect = new Error('a defect');
    const { exchanges, handle } = keepExchanges();
    const onTimeout = () => {
      throw defect;
    };
    using http = await startHttp(
      (exchange) => {
        exchange.readBody({ ...SILENT_SINK, onTimeout }, 1_000);
        handle(exchange);
      },
      {},
      undefined,
      time,
    );
    using client = await RawConnection.open(http.url);
    client.write(post(4));
    await exchanges.next();
    time.passTo(1_000);
    expect((await client.readToClose()).toString()).toBe('');
    expect(http.defects).toEqual([defect]);
  });
});

describe('what an exchange says of its client', () => {
  test('is its address, and no certificate where it does not use TLS', async () => {
    const { exchanges, handle } = keepExchanges();
    using http = await startHttp(handle);
    using client = await RawConnection.open(http.url);
    client.write(GET);
    const exchange = await exchanges.next();
    expect([exchange.remoteAddress, exchange.clientSubject, exchange.scheme]).toEqual([
      '127.0.0.1',
      undefined,
      'http',
    ]);
  });

  test('is no certificate where it has none', async () => {
    await using authority = await createAuthority();
    const { exchanges, handle } = keepExchanges();
    using http = await startHttp(handle, {}, await authority.issue('server'));
    using client = await RawConnection.open(http.url, { ca: authority.ca.cert });
    client.write(GET);
    const exchange = await exchanges.next();
    expect([exchange.clientSubject, exchange.scheme]).toEqual([undefined, 'https']);
  });
});
