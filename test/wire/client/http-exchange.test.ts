import { describe, expect, test } from 'vitest';
import { Fields, findHeadEnd, parseRequestHead } from '#wire/message';
import { type ExchangeConnection, HttpExchange } from '../../../src/wire/client/http-exchange.ts';

const OK = { status: 200, reason: 'OK', fieldLines: 'X-A: b\r\n', contentLength: null };
const bytes = (...texts: readonly string[]) => texts.map((text) => Buffer.from(text));

/** An exchange for a request, and the calls to its connection: of writes, the bytes. */
function open(request = 'GET / HTTP/1.1', { canKeep = true, canTake = true } = {}) {
  const calls: string[] = [];
  const note = (name: string) => () => void calls.push(name);
  const connection: ExchangeConnection = {
    remoteAddress: '192.0.2.1',
    isEncrypted: true,
    clientSubject: 'CN=a',
    keepAliveLines: 'Kept: yes\r\n',
    canKeep: () => canKeep,
    readBody: (_sink, timeoutMs) => void calls.push(`read for ${timeoutMs}`),
    discardBody: note('discard'),
    stopReadingBody: note('stop'),
    destroy: note('destroy'),
    yieldToOtherSockets: note('yield'),
    pauseReading: note('pause'),
    resumeReading: note('resume'),
    write(before, pieces, sizeBytes, after) {
      const body = Buffer.concat(pieces).toString('latin1', 0, sizeBytes);
      calls.push(before + body + after);
      return canTake;
    },
    endResponse: (isKept) => void calls.push(isKept ? 'keep' : 'close'),
  };
  const head = Buffer.from(`${request}\r\nHost: x\r\n\r\n`);
  const exchange = new HttpExchange(parseRequestHead(head, 0, findHeadEnd(head, 0)), connection, 5);
  return { exchange, calls };
}

const SINK = { onData: () => undefined, onEnd: () => undefined, onTimeout: () => undefined };

describe('a response', () => {
  test('goes out with its head in the first write, and is chunked where its length is unknown', () => {
    const { exchange, calls } = open();
    expect([exchange.status, exchange.isAnswered, exchange.isEnded, exchange.isFinished]).toEqual([
      ...[0, false, false, false],
    ]);
    exchange.begin(OK);
    expect([exchange.status, exchange.isAnswered, calls]).toEqual([200, true, []]);
    expect(exchange.write(bytes('a'.repeat(10), 'b'.repeat(20)))).toBe(true);
    exchange.write(bytes('c'));
    exchange.end();
    expect([exchange.isEnded, exchange.isFinished]).toEqual([true, false]);
    expect(calls).toEqual([
      `HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\nKept: yes\r\n\r\n1e\r\n${'a'.repeat(10)}${'b'.repeat(20)}\r\n`,
      '1\r\nc\r\n',
      '0\r\n\r\n',
      'keep',
    ]);
  });

  test('has its last pieces, its end and its trailers in one write', () => {
    const { exchange, calls } = open();
    const trailers = new Fields();
    trailers.add('X-T', 'x-t', '1');
    trailers.add('X-U', 'x-u', '2');
    exchange.begin(OK);
    exchange.flushHead();
    exchange.flushHead();
    exchange.end(bytes('abc'), trailers);
    expect(calls.slice(1)).toEqual(['3\r\nabc\r\n0\r\nX-T: 1\r\nX-U: 2\r\n\r\n', 'keep']);
  });

  test('with a length has no chunks, and no trailers', () => {
    const { exchange, calls } = open();
    const trailers = new Fields();
    trailers.add('X-T', 'x-t', '1');
    exchange.begin({ ...OK, contentLength: 4 });
    exchange.write(bytes('ab'));
    exchange.write(bytes('c'));
    exchange.end(bytes('d'), trailers);
    expect(calls).toEqual([
      'HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 4\r\nKept: yes\r\n\r\nab',
      ...['c', 'd', 'keep'],
    ]);
  });

  test('that is complete before its end writes nothing more', () => {
    const { exchange, calls } = open();
    exchange.begin({ ...OK, contentLength: 2 });
    exchange.write(bytes('ab'));
    exchange.end();
    expect(calls.slice(1)).toEqual(['keep']);
  });

  test('writes no empty chunk, which would end the body', () => {
    const { exchange, calls } = open('GET / HTTP/1.1', { canTake: false });
    exchange.begin(OK);
    exchange.flushHead();
    expect(exchange.write(bytes(''))).toBe(true);
    expect(exchange.write([])).toBe(true);
    expect(calls).toHaveLength(1);
    expect(exchange.write(bytes('a'))).toBe(false);
  });

  test.each([
    ['204', 'GET / HTTP/1.1', 204, ''],
    ['304', 'GET / HTTP/1.1', 304, 'Content-Length: 3\r\n'],
    ['200 to HEAD', 'HEAD / HTTP/1.1', 200, 'Content-Length: 3\r\n'],
  ])('with %s has no body, whatever is written', (_, request, status, lengthLine) => {
    const { exchange, calls } = open(request);
    exchange.begin({ ...OK, status, contentLength: 3 });
    exchange.write(bytes('a'));
    exchange.write(bytes('b'));
    exchange.end(bytes('c'));
    expect(calls).toEqual([`HTTP/1.1 ${status} OK\r\nX-A: b\r\n${lengthLine}Kept: yes\r\n\r\n`, 'keep']);
  });

  test.each([
    ['204', 'GET / HTTP/1.1', 204],
    ['200 to HEAD of HTTP/1.0', 'HEAD / HTTP/1.0', 200],
  ])('with %s says nothing of a length that is unknown, and keeps the connection', (_, request, status) => {
    const { exchange, calls } = open(request);
    exchange.begin({ ...OK, status });
    exchange.end(bytes('c'));
    expect(calls).toEqual([`HTTP/1.1 ${status} OK\r\nX-A: b\r\nKept: yes\r\n\r\n`, 'keep']);
  });

  test('to HTTP/1.0 ends with the connection where its length is unknown, and keeps it where it is known', () => {
    const unknown = open('GET / HTTP/1.0');
    unknown.exchange.begin(OK);
    unknown.exchange.end(bytes('abc'));
    expect(unknown.calls).toEqual(['HTTP/1.1 200 OK\r\nX-A: b\r\nConnection: close\r\n\r\nabc', 'close']);
    const known = open('GET / HTTP/1.0');
    known.exchange.begin({ ...OK, contentLength: 3 });
    known.exchange.end(bytes('abc'));
    expect(known.calls).toEqual([
      'HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 3\r\nKept: yes\r\n\r\nabc',
      'keep',
    ]);
  });

  test.each([
    ['the connection says so', { canKeep: false }, false],
    ['it is to be the last', {}, true],
  ])('closes its connection where %s', (_, options, isLast) => {
    const { exchange, calls } = open('GET / HTTP/1.1', options);
    exchange.isLast = isLast;
    exchange.begin({ ...OK, contentLength: 0 });
    exchange.end();
    expect(calls).toEqual([
      'HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n',
      'close',
    ]);
  });

  test('begins, ends and is written once', () => {
    const { exchange, calls } = open();
    expect(exchange.write(bytes('before'))).toBe(true);
    exchange.end(bytes('before'));
    exchange.flushHead();
    expect(calls).toEqual([]);
    exchange.begin({ ...OK, contentLength: 1 });
    exchange.begin({ ...OK, status: 500 });
    exchange.end(bytes('a'));
    exchange.end(bytes('b'));
    expect(exchange.write(bytes('b'))).toBe(true);
    expect(exchange.status).toBe(200);
    expect(calls).toHaveLength(2);
  });

  test('of text has its type, its length, its date and what else it is given', () => {
    const { exchange, calls } = open();
    exchange.answer(404, 'text/plain', 'né', 'X-C: d\r\n');
    expect(calls[0]).toMatch(
      /^HTTP\/1\.1 404 Not Found\r\nContent-Type: text\/plain\r\nX-C: d\r\nDate: .+ GMT\r\nContent-Length: 3\r\nKept: yes\r\n\r\n/,
    );
    expect(calls[0]?.endsWith(Buffer.from('né').toString('latin1'))).toBe(true);
    const other = open();
    other.exchange.answer(599, 'text/plain', '');
    expect(other.calls[0]).toMatch(/^HTTP\/1\.1 599 \r\nContent-Type: text\/plain\r\nDate: /);
  });
});

describe('an exchange', () => {
  test('passes on what is asked of its connection, until it is finished', () => {
    const { exchange, calls } = open();
    const ask = () => {
      exchange.readBody(SINK, 7);
      exchange.discardBody();
      exchange.stopReadingBody();
      exchange.yieldToOtherSockets();
      exchange.pauseReading();
      exchange.resumeReading();
      exchange.destroy();
    };
    ask();
    expect(calls.splice(0)).toEqual(['read for 7', 'discard', 'stop', 'yield', 'pause', 'resume', 'destroy']);
    exchange.finish('closed', 8);
    ask();
    exchange.begin(OK);
    exchange.flushHead();
    exchange.end(bytes('a'));
    expect(calls).toEqual([]);
    expect([exchange.isFinished, exchange.isEnded, exchange.isAnswered]).toEqual([true, true, false]);
  });

  test('tells once that it is finished, and nothing of a client that takes more afterwards', () => {
    const { exchange } = open();
    const ends: unknown[] = [];
    exchange.onFinished = (end, atMs) => ends.push([end, atMs, exchange.isFinished]);
    exchange.onDrain = () => undefined;
    exchange.finish('sent', 8);
    exchange.finish('closed', 9);
    expect(ends).toEqual([['sent', 8, true]]);
    expect([exchange.onDrain, exchange.onFinished]).toEqual([null, null]);
    open().exchange.finish('sent', 8);
  });

  test('knows its client, and when it came', () => {
    const { exchange } = open();
    const { remoteAddress, clientSubject, scheme, arrivedMs } = exchange;
    expect({ remoteAddress, clientSubject, scheme, arrivedMs }).toEqual({
      remoteAddress: '192.0.2.1',
      clientSubject: 'CN=a',
      scheme: 'https',
      arrivedMs: 5,
    });
  });
});
