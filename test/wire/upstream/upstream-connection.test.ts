import { describe, expect, test } from 'vitest';
import { createAuthority } from '#testkit/certificates.ts';
import type { HttpExchange, RequestBodySink } from '#wire/client';
import type { UpstreamConnection } from '../../../src/wire/upstream/upstream-connection.ts';
import type { UpstreamFault } from '../../../src/wire/upstream/upstream-request.ts';
import { connectTo, startHttp } from '../start-http.ts';
import { Collector, open, type Received } from './collect-response.ts';

function ask(connection: UpstreamConnection, body: Buffer): Promise<Received | UpstreamFault> {
  const collector = new Collector();
  const headText = `POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n\r\n`;
  const request = { method: 'POST', headText, body: [body], firstByteMs: 60_000, idleMs: 60_000 };
  connection.send(request, collector);
  return collector.result;
}

/** Echoes the body in chunks, as it arrives. */
function echo(exchange: HttpExchange): void {
  const begin = () => exchange.begin({ status: 200, reason: 'OK', fieldLines: '', contentLength: null });
  const sink: RequestBodySink = {
    onData(view) {
      begin();
      exchange.write([view]);
    },
    onEnd() {
      begin();
      exchange.end();
    },
    onTimeout: () => exchange.destroy(),
  };
  exchange.readBody(sink, 60_000);
}

describe('client and server connections', () => {
  const sizes = [0, 1, 1_000, 70_000, 3_000_000];

  test.for(sizes)(
    'carry %i bytes in both directions, in successive requests on one connection',
    async (size) => {
      using http = await startHttp(echo);
      const connections = connectTo(http.url);
      const connection = await open(connections);
      for (let round = 1; round <= 3; round++) {
        const body = Buffer.alloc(size, `round ${round} `);
        const received = (await ask(connection, body)) as Received;
        expect(received.head.status).toBe(200);
        expect(received.body.equals(body)).toBe(true);
        expect(connections.takeIdle()).toBe(connection);
        expect(connection.exchangeCount).toBe(round);
      }
      connections.destroy();
      expect(http.defects).toEqual([]);
    },
  );

  test.for(sizes)('do the same over TLS with %i bytes', async (size) => {
    await using authority = await createAuthority();
    const certificate = await authority.issue('server');
    using http = await startHttp(echo, {}, certificate);
    const connections = connectTo(http.url, authority.ca.cert);
    const connection = await open(connections);
    for (let round = 1; round <= 2; round++) {
      const body = Buffer.alloc(size, `round ${round} `);
      const received = (await ask(connection, body)) as Received;
      expect(received.body.equals(body)).toBe(true);
      expect(connections.takeIdle()).toBe(connection);
    }
    connections.destroy();
    expect(http.defects).toEqual([]);
  });

  test('distinguish clients with TLS from those without', async () => {
    await using authority = await createAuthority();
    const schemes: string[] = [];
    const note = (exchange: HttpExchange) => {
      schemes.push(exchange.scheme);
      exchange.answer(200, 'text/plain', 'ok');
    };
    using plain = await startHttp(note);
    using secure = await startHttp(note, {}, await authority.issue('server'));
    for (const [url, ca] of [[plain.url], [secure.url, authority.ca.cert]] as const) {
      const connections = connectTo(url, ca);
      await ask(await open(connections), Buffer.alloc(0));
      connections.destroy();
    }
    expect(schemes).toEqual(['http', 'https']);
  });
});

describe('a connection to a server', () => {
  test('calls its handler when it is aborted, but not when it is destroyed', async () => {
    using http = await startHttp(() => undefined);
    const connections = connectTo(http.url);
    const [destroyed, broken] = [await open(connections), await open(connections)];
    const silent = ask(destroyed, Buffer.alloc(1));
    const told = ask(broken, Buffer.alloc(1));

    destroyed.destroy();
    connections.destroy();

    expect(await told).toBe('closed');
    expect(await Promise.race([silent, Promise.resolve('nothing')])).toBe('nothing');
    expect([destroyed.isClosed, broken.isClosed]).toEqual([true, true]);
  });

  test('is closed when the response is late', async () => {
    using http = await startHttp(() => undefined);
    const connections = connectTo(http.url);
    const connection = await open(connections);
    const collector = new Collector();
    const request = { method: 'GET', headText: 'GET / HTTP/1.1\r\nHost: x\r\n\r\n', body: [] };
    connection.send({ ...request, firstByteMs: 20, idleMs: 20 }, collector);
    expect(await collector.result).toBe('timed_out');
    expect(connection.isClosed).toBe(true);
  });

  test('is reused first if it was used last', async () => {
    using http = await startHttp((exchange) => exchange.answer(200, 'text/plain', 'ok'));
    const connections = connectTo(http.url);
    const [first, second] = [await open(connections), await open(connections)];
    await ask(first, Buffer.alloc(0));
    await ask(second, Buffer.alloc(0));
    expect(connections.takeIdle()).toBe(second);
    expect(connections.takeIdle()).toBe(first);
    expect(connections.takeIdle()).toBeNull();
    connections.destroy();
  });
});
