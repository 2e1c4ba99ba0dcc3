import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import { listen } from '#testkit/servers/local-server.ts';
import { type ServerSide, startTcpServer } from '#testkit/servers/tcp-server.ts';
import { HttpError } from '#wire/message';
import { DeadlineClock } from '../../../src/wire/deadline-clock.ts';
import { SharedReads } from '../../../src/wire/upstream/shared-reads.ts';
import type { UpstreamConnection } from '../../../src/wire/upstream/upstream-connection.ts';
import { UpstreamConnections } from '../../../src/wire/upstream/upstream-connections.ts';
import type { ResponseHandler, UpstreamFault } from '../../../src/wire/upstream/upstream-request.ts';
import { ScriptedTime } from '../scripted-time.ts';
import { startHttp } from '../start-http.ts';
import { Collector, open, type Received, sendOn } from './collect-response.ts';

const ANSWER = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const REQUEST = {
  method: 'GET',
  headText: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
  body: [] as readonly Buffer[],
  firstByteMs: 60_000,
  idleMs: 60_000,
};

/** Connections to a server, at a time that the test passes, and the defects that they report. */
function connect(url: string, options: { keepAliveMs?: number; maxAgeMs?: number; ca?: string } = {}) {
  const { keepAliveMs = 3_600_000, maxAgeMs = Number.POSITIVE_INFINITY, ca } = options;
  const time = new ScriptedTime();
  const defects: unknown[] = [];
  const shared = new SharedReads();
  const { hostname: host, port } = new URL(url);
  const connections = new UpstreamConnections(
    {
      connect(callback) {
        if (ca !== undefined) {
          const socket = connectTls({ host, port: Number(port), ca, ALPNProtocols: ['http/1.1'] });
          socket.once('secureConnect', () => callback(null, socket));
          return;
        }
        const reads = shared.forSocket();
        const socket = connectTcp({ host, port: Number(port), onread: reads.option });
        socket.once('connect', () => callback(null, socket, reads));
        socket.once('error', (error) => callback(error, null));
      },
      keepAliveMs,
      maxAgeMs,
      onDefect: (error) => defects.push(error),
    },
    new DeadlineClock(1, time),
  );
  onTestFinished(() => connections.destroy());
  return { connections, time, defects };
}

/** The faults of a request, with their causes and whether any byte had come. */
function sendNoting(connection: UpstreamConnection, changes: Partial<ResponseHandler> = {}) {
  const faulted = Promise.withResolvers<readonly [UpstreamFault, unknown, boolean]>();
  const nothing = () => undefined;
  const handler: ResponseHandler = {
    stream: null,
    onWritten: nothing,
    onHead: nothing,
    onData: nothing,
    onReadEnd: nothing,
    onEnd: nothing,
    onFault: (...fault) => faulted.resolve(fault),
    ...changes,
  };
  connection.send(REQUEST, handler);
  return faulted.promise;
}

async function openTo(options: Parameters<typeof connect>[1] = {}) {
  const server = await startTcpServer();
  onTestFinished(() => server[Symbol.asyncDispose]());
  const surroundings = connect(server.url, options);
  const connection = await open(surroundings.connections);
  return { ...surroundings, server, connection, side: await server.next() };
}

describe('a request fails', () => {
  test.each<readonly [string, (side: ServerSide) => void, UpstreamFault, unknown, boolean]>([
    ['the server closes before its answer', ({ socket }) => void socket.end(), 'closed', null, false],
    [
      'the server resets the connection',
      ({ socket }) => void socket.resetAndDestroy(),
      ...(['closed', expect.objectContaining({ code: 'ECONNRESET' }), false] as const),
    ],
    ['the server closes in a head', ({ socket }) => void socket.end('HTTP/1.1 2'), 'closed', null, true],
    [
      'the server closes in a body',
      ({ socket }) => void socket.end('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok'),
      ...(['closed', new HttpError('closed_early'), true] as const),
    ],
    [
      'the answer is not HTTP',
      (side) => side.write('HTTP/2\r\n\r\n'),
      'malformed',
      new HttpError('malformed'),
      true,
    ],
    [
      'the body is not HTTP',
      (side) => side.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n'),
      ...(['malformed', new HttpError('malformed'), true] as const),
    ],
    [
      'the server switches to a protocol that nobody asked for',
      (side) => side.write('HTTP/1.1 101 Switching Protocols\r\n\r\n'),
      ...(['malformed', new HttpError('malformed'), true] as const),
    ],
    [
      'more than 16 informational responses come',
      (side) => side.write('HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(17)),
      ...(['malformed', new HttpError('malformed'), true] as const),
    ],
    [
      'a head has more than 16 KiB',
      (side) => side.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(16 * 1024 - 23)}\r\n\r\n`),
      ...(['malformed', new HttpError('head_too_large'), true] as const),
    ],
    [
      'a head has more than 16 KiB and no end',
      (side) => side.write(`HTTP/1.1 200 OK\r\nX: ${'x'.repeat(16 * 1024)}`),
      ...(['malformed', new HttpError('head_too_large'), true] as const),
    ],
  ])('where %s', async (_, answer, fault, cause, hasBytes) => {
    const { connection, side, defects, time } = await openTo();
    const faulted = sendNoting(connection);
    expect(connection.isBusy).toBe(true);
    await side.untilReceived('\r\n\r\n');
    answer(side);
    expect(await faulted).toEqual([fault, cause, hasBytes]);
    expect([connection.isClosed, connection.isBusy, defects]).toEqual([true, false, []]);
    // The clock runs as long as there is a connection.
    expect(time.timers.size).toBe(0);
    await side.untilClosed();
  });

  test('not where a head has 16 KiB, in two reads', async () => {
    const { connection, side } = await openTo();
    const { result } = sendOn(connection, { method: 'GET', headText: REQUEST.headText, body: [] });
    await side.untilReceived('\r\n\r\n');
    const lines = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX: ';
    side.write(lines + 'x'.repeat(8 * 1024));
    side.write(`${'x'.repeat(8 * 1024 - lines.length - 4)}\r\n\r\n`);
    expect(((await result) as Received).head.status).toBe(200);
  });

  test('with the fault of the first end only', async () => {
    const { connection, side } = await openTo();
    const faults: UpstreamFault[] = [];
    sendNoting(connection, { onFault: (fault) => faults.push(fault) });
    await side.untilReceived('\r\n\r\n');
    connection.abort();
    connection.abort();
    await side.untilClosed();
    expect(faults).toEqual(['closed']);
  });
});

describe('an answer without a length', () => {
  test('ends when the server closes its side, and its connection carries no other', async () => {
    const { connection, connections, side } = await openTo();
    const { result } = sendOn(connection);
    await side.untilReceived('ping');
    side.socket.end('HTTP/1.1 200 OK\r\n\r\nall');
    expect(((await result) as Received).body.toString()).toBe('all');
    expect([connection.isClosed, connections.takeIdle()]).toEqual([true, null]);
    // Nothing is wrong with the server: others are used again.
    const other = await open(connections);
    connections.returnUnused(other);
    expect(connections.takeIdle()).toBe(other);
  });

  test('is not proven over TLS: somebody on the way can close a connection', async () => {
    await using authority = await createAuthority();
    using http = await startHttp(
      (exchange) => {
        exchange.begin({ status: 200, reason: 'OK', fieldLines: '', contentLength: null });
        exchange.end([Buffer.from('all')]);
      },
      {},
      await authority.issue('server'),
    );
    const { connections } = connect(http.url, { ca: authority.ca.cert });
    const connection = await open(connections);
    const faulted = new Promise((resolve) => {
      connection.send(
        { ...REQUEST, headText: 'GET / HTTP/1.0\r\n\r\n' },
        Object.assign(new Collector(), { onFault: (...fault: unknown[]) => resolve(fault) }),
      );
    });
    expect(await faulted).toEqual(['closed', new HttpError('closed_early'), true]);
  });
});

describe('bytes that belong to no answer', () => {
  test('close an idle connection and its siblings, and for a minute each new one is used once', async () => {
    const { connections, connection, side, server, time, defects } = await openTo();
    const other = await open(connections);
    const otherSide = await server.next();
    for (const each of [connection, other]) connections.returnUnused(each);
    otherSide.write('HTTP/1.1 408 Request Timeout\r\n\r\n');
    await otherSide.untilClosed();
    await side.untilClosed();
    expect([connections.takeIdle(), connection.isClosed, other.isClosed]).toEqual([null, true, true]);
    expect(defects).toEqual([]);

    const carryOne = async () => {
      const late = await open(connections);
      const lateSide = await server.next();
      const { result } = sendOn(late);
      await lateSide.untilReceived('ping');
      lateSide.write(ANSWER);
      expect(((await result) as Received).body.toString()).toBe('ok');
      return late;
    };
    time.ms = 59_999;
    expect((await carryOne()).isClosed).toBe(true);
    expect(connections.takeIdle()).toBeNull();
    time.ms = 60_000;
    const kept = await carryOne();
    expect(kept.isClosed).toBe(false);
    expect(connections.takeIdle()).toBe(kept);
  });

  test('close a connection that was just taken for a request', async () => {
    const { connections, connection, side, defects } = await openTo();
    connections.returnUnused(connection);
    expect(connections.takeIdle()).toBe(connection);
    side.write('HTTP/1.1 408 Request Timeout\r\n\r\n');
    await side.untilClosed();
    expect([connection.isClosed, defects]).toEqual([true, []]);
  });

  test('after an answer close its connection, and the answer counts', async () => {
    const { connections, connection, side, server } = await openTo();
    const { result, steps } = sendOn(connection);
    await side.untilReceived('ping');
    side.write(`${ANSWER}HTTP/1.1 200 OK\r\n\r\n`);
    expect(((await result) as Received).body.toString()).toBe('ok');
    expect([connection.isClosed, connections.takeIdle()]).toEqual([true, null]);
    expect(steps.items.at(-1)).toBe('end');
    // The others are not trusted either.
    const other = await open(connections);
    connections.returnUnused(other);
    expect(other.isClosed).toBe(true);
    await (await server.next()).untilClosed();
  });
});

describe('a connection', () => {
  test.each([
    ['close', 'Connection: close\r\n', 3_600_000, false],
    ['nothing', '', 3_600_000, true],
    ['one second', 'Keep-Alive: timeout=1\r\n', 3_600_000, false],
    ['two seconds, after another parameter', 'Keep-Alive: max=5, Timeout=2\r\n', 3_600_000, true],
    ['no number', 'Keep-Alive: timeout=x\r\n', 3_600_000, true],
    ['a parameter with a similar name', 'Keep-Alive: xtimeout=1\r\n', 3_600_000, true],
    ['nothing, where ours are not kept', '', 0, false],
    ['nothing, where ours are kept for a moment', '', 1, true],
  ])('is kept or not as the server and we say: %s', async (_, fields, keepAliveMs, isKept) => {
    const { connections, connection, side } = await openTo({ keepAliveMs });
    const { result } = sendOn(connection);
    await side.untilReceived('ping');
    side.write(`HTTP/1.1 200 OK\r\n${fields}Content-Length: 2\r\n\r\nok`);
    await result;
    expect(connection.isClosed).toBe(!isKept);
    expect(connections.takeIdle()).toBe(isKept ? connection : null);
  });

  test('is kept as long as we keep it where the server says longer, and after each request anew', async () => {
    const { connections, connection, side, time } = await openTo({ keepAliveMs: 1_000 });
    for (const startMs of [0, 900]) {
      time.passTo(startMs);
      const { result } = sendOn(connection);
      await side.untilReceived('ping');
      side.write('HTTP/1.1 200 OK\r\nKeep-Alive: timeout=60\r\nContent-Length: 2\r\n\r\nok');
      await result;
      if (startMs === 0) expect(connections.takeIdle()).toBe(connection);
    }
    time.passTo(1_899);
    expect(connection.isClosed).toBe(false);
    time.passTo(1_900);
    expect([connection.isClosed, connections.takeIdle()]).toEqual([true, null]);
  });

  test('that is idle and closed by the server is not used again', async () => {
    const { connections, connection, side } = await openTo();
    connections.returnUnused(connection);
    side.socket.end();
    await side.untilClosed();
    expect(connection.isClosed).toBe(true);
    expect(connections.takeIdle()).toBeNull();
    connections.returnUnused(connection);
    expect(connections.takeIdle()).toBeNull();
  });

  test('that is too old takes no further request, and is closed', async () => {
    const { connections, time, server } = await openTo({ maxAgeMs: 1_000 });
    time.ms = 500;
    const connection = await open(connections);
    await server.next();
    connections.returnUnused(connection);
    time.ms = 1_499;
    connections.clock.nowMs();
    expect(connections.takeIdle()).toBe(connection);
    connections.returnUnused(connection);
    time.ms = 1_500;
    connections.clock.nowMs();
    expect([connections.takeIdle(), connection.isClosed]).toEqual([null, true]);
  });

  test('that closes takes no other from those that are idle', async () => {
    const { connections, connection: first, server } = await openTo();
    const busy = await open(connections);
    const idle = [first, await open(connections), await open(connections)];
    const sides = [await server.next(), await server.next(), await server.next()];
    const faulted = sendNoting(busy);
    for (const each of idle) connections.returnUnused(each);
    sides[0]?.socket.end();
    expect((await faulted)[0]).toBe('closed');
    idle[0]?.destroy();
    expect([connections.takeIdle(), connections.takeIdle()]).toEqual([idle[2], idle[1]]);
    expect(connections.takeIdle()).toBeNull();
  });

  test('that was used is free after its second answer only if the request was sent by then', async () => {
    const { connections, connection, side } = await openTo();
    const first = sendOn(connection);
    await side.untilReceived('ping');
    side.write(ANSWER);
    await first.result;
    expect(connections.takeIdle()).toBe(connection);
    const early = sendOn(connection, { body: null });
    await side.untilReceived('POST');
    side.write(ANSWER);
    await early.result;
    expect([connections.takeIdle(), connection.isClosed]).toEqual([null, true]);
  });

  test('that cannot be opened says why', async () => {
    await using server = await startTcpServer();
    // The server has this port, but not at this address.
    const { connections } = connect(server.url.replace('127.0.0.1', '127.0.0.9'));
    await expect(open(connections)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('takes the end of a body once: what comes after it goes nowhere', async () => {
    const { connections, connection, side } = await openTo();
    const { result } = sendOn(connection, { body: null });
    connection.endBody('p\xefng');
    await side.untilReceived('\r\n\r\np\xefng');
    side.write(ANSWER);
    await result;
    connection.endBody('more');
    expect(connection.writeBody('', Buffer.from('more'), '')).toBe(true);
    expect(connections.takeIdle()).toBe(connection);
    const second = sendOn(connection);
    await side.untilReceived('POST');
    side.write(ANSWER);
    await second.result;
    expect(connection.silentSinceMs).toBeNull();
  });

  test('that carries a second request says nothing of what the first one read', async () => {
    const { connections, connection, side } = await openTo();
    const first = sendOn(connection);
    await side.untilReceived('ping');
    side.write(ANSWER);
    await first.result;
    expect(connections.takeIdle()).toBe(connection);
    const faulted = sendNoting(connection);
    await side.untilReceived('GET');
    side.socket.end();
    expect(await faulted).toEqual(['closed', null, false]);
  });

  test('that is resumed without a pause keeps its time to the head', async () => {
    const { connection, side, time } = await openTo();
    const faults: UpstreamFault[] = [];
    connection.send(
      { ...REQUEST, firstByteMs: 1_000, idleMs: 10 },
      Object.assign(new Collector(), { onFault: (fault: UpstreamFault) => faults.push(fault) }),
    );
    await side.untilReceived('\r\n\r\n');
    connection.resume();
    time.passTo(999);
    expect(faults).toEqual([]);
    time.passTo(1_000);
    expect(faults).toEqual(['timed_out']);
  });

  test('reads no further while it is paused', async () => {
    const { connection, connections, side, server } = await openTo();
    const { steps } = sendOn(connection);
    await side.untilReceived('ping');
    side.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n');
    await steps.until(() => steps.items.at(-1) === 'read end');
    connection.pause();
    connection.pause();
    side.write('o');
    // An answer on another connection comes later than this byte.
    const other = await open(connections);
    const { result } = sendOn(other);
    const otherSide = await server.next();
    await otherSide.untilReceived('ping');
    otherSide.write(ANSWER);
    await result;
    expect(steps.items).not.toContain('data');
    connection.resume();
    await steps.until(() => steps.items.includes('data'));
  });

  test('whose bytes cannot be decrypted is closed', async () => {
    await using authority = await createAuthority();
    using http = await startHttp(() => undefined, {}, await authority.issue('server'));
    const { port } = new URL(http.url);
    const relayed = Promise.withResolvers<Socket>();
    const relay = createServer((socket) => {
      const target = connectTcp({ host: '127.0.0.1', port: Number(port) });
      socket.pipe(target).pipe(socket);
      for (const each of [socket, target]) each.on('error', () => undefined);
      relayed.resolve(socket);
    });
    const relayPort = await listen(relay);
    onTestFinished(() => void relay.close());
    const { connections } = connect(`https://127.0.0.1:${relayPort}`, { ca: authority.ca.cert });
    const connection = await open(connections);
    const faulted = sendNoting(connection);
    (await relayed.promise).write('this is no record of TLS');
    expect(await faulted).toEqual(['closed', expect.objectContaining({ library: 'SSL routines' }), false]);
  });

  test('of which the socket is missing without an error says that too', async () => {
    const settings = { keepAliveMs: 1, maxAgeMs: 1, onDefect: () => undefined };
    const connections = new UpstreamConnections(
      { ...settings, connect: (callback) => callback(null, null) },
      new DeadlineClock(1, new ScriptedTime()),
    );
    await expect(open(connections)).rejects.toThrow('no connection');
  });

  test('that is retired while it is idle is closed, and one that is destroyed fails its request', async () => {
    const { connections, connection, server } = await openTo();
    const busy = await open(connections);
    const busySide = await server.next();
    const faulted = sendNoting(busy);
    await busySide.untilReceived('\r\n\r\n');
    connections.returnUnused(connection);
    connections.retire();
    expect([connection.isClosed, busy.isClosed]).toEqual([true, false]);
    connections.destroy();
    expect(await faulted).toEqual(['closed', null, false]);
    expect((await open(connections)).isClosed).toBe(true);
  });

  test('that is over takes no more of a body, and does not make its sender wait', async () => {
    const { connection, side } = await openTo();
    const { result } = sendOn(connection, { body: null });
    side.socket.end();
    expect(await result).toBe('closed');
    expect(connection.writeBody('', Buffer.from('more'), '')).toBe(true);
    connection.endBody('last');
    connection.pause();
    connection.resume();
    expect(connection.silentSinceMs).toBeNull();
  });

  test('counts its requests, and says nothing of its handler while it is idle', async () => {
    const { connections, connection, side } = await openTo();
    expect([connection.exchangeCount, connection.isBusy, connection.isAnswering]).toEqual([0, false, false]);
    for (const count of [1, 2]) {
      const { result } = sendOn(connection);
      expect([connection.exchangeCount, connection.isAnswering]).toEqual([count, false]);
      await side.untilReceived('ping');
      side.write(ANSWER);
      await result;
      expect([connection.isBusy, connection.isAnswering]).toEqual([false, true]);
      expect(connections.takeIdle()).toBe(connection);
    }
  });
});

describe('a handler', () => {
  test.each(['onHead', 'onData', 'onEnd'] as const)(
    'that throws in %s is a defect, and its request fails',
    async (step) => {
      const { connection, side, defects } = await openTo();
      const defect = new Error('a defect');
      const throwing = () => {
        throw defect;
      };
      const faulted = sendNoting(connection, { [step]: throwing });
      await side.untilReceived('\r\n\r\n');
      side.write(ANSWER);
      await side.untilClosed();
      expect(defects).toEqual([defect]);
      expect(connection.isClosed).toBe(true);
      if (step !== 'onEnd') expect(await faulted).toEqual(['defect', defect, true]);
    },
  );

  test('that throws when an answer ends with its connection is a defect too', async () => {
    const { connection, side, defects } = await openTo();
    const defect = new Error('a defect');
    sendNoting(connection, {
      onEnd: () => {
        throw defect;
      },
    });
    await side.untilReceived('\r\n\r\n');
    side.socket.end('HTTP/1.1 200 OK\r\n\r\nall');
    await side.untilClosed();
    expect([defects, connection.isClosed]).toEqual([[defect], true]);
  });

  test('that throws when its request fails is a defect too', async () => {
    const { connection, side, defects } = await openTo();
    const defect = new Error('a defect');
    sendNoting(connection, {
      onFault: () => {
        throw defect;
      },
    });
    side.socket.end();
    await side.untilClosed();
    expect(defects).toEqual([defect]);
  });

  test.each(['head', 'data'])('that destroys the connection in its %s hears nothing more', async (when) => {
    const { connection, side } = await openTo();
    const collector = sendOn(connection);
    collector.onStep = (step) => {
      if (step === when) connection.destroy();
    };
    await side.untilReceived('ping');
    side.write(ANSWER);
    await side.untilClosed();
    expect(collector.steps.items).toEqual(
      when === 'head' ? ['written', 'head'] : ['written', 'head', 'data'],
    );
  });

  test('is told of each read of an incomplete answer, and only of the end with the last one', async () => {
    const { connection, side } = await openTo();
    const { steps, result } = sendOn(connection);
    await side.untilReceived('ping');
    side.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n');
    await steps.until(() => steps.items.at(-1) === 'read end');
    side.write('o');
    await steps.until(() => steps.items.filter((step) => step === 'read end').length === 2);
    side.write('k');
    await result;
    expect(steps.items).toEqual(['written', 'head', 'read end', 'data', 'read end', 'data', 'end']);
  });

  test('sees a head of which a part came with one that is informational', async () => {
    const { connection, connections, side, server } = await openTo();
    const { result } = sendOn(connection);
    await side.untilReceived('ping');
    side.write(`HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n${ANSWER.slice(0, 20)}`);
    // An answer on another connection comes later than these bytes.
    const other = sendOn(await open(connections));
    const otherSide = await server.next();
    await otherSide.untilReceived('ping');
    otherSide.write(ANSWER);
    await other.result;
    side.write(ANSWER.slice(20));
    const { head, body } = (await result) as Received;
    expect([head.status, head.fields.get('x'), body.toString()]).toEqual([200, undefined, 'ok']);
  });

  test('sees no body in an answer to HEAD, and the connection carries the next request', async () => {
    const { connection, connections, side } = await openTo();
    const { result } = sendOn(connection, { method: 'HEAD' });
    await side.untilReceived('ping');
    side.write('HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n');
    expect(((await result) as Received).body.length).toBe(0);
    expect(connections.takeIdle()).toBe(connection);
  });

  test('sees a head that comes byte by byte, after one that is informational', async () => {
    const { connection, side } = await openTo();
    side.socket.setNoDelay(true);
    const { result } = sendOn(connection);
    await side.untilReceived('ping');
    for (const byte of `HTTP/1.1 103 Early Hints\r\nX: y\r\n\r\n${ANSWER}`) {
      side.write(byte);
      await new Promise(setImmediate);
    }
    const { head, body } = (await result) as Received;
    expect([head.status, head.fields.get('x'), body.toString()]).toEqual([200, undefined, 'ok']);
  });
});
