import { describe, expect, test } from 'vitest';
import { hang, type Script, startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { exchangeRaw, postBytes, RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const CHAT = postBytes('/v1/chat/completions', '{"model":"m"}');
const requests = [
  ['POST', CHAT],
  ['GET /v1/models', 'GET /v1/models HTTP/1.1\r\nHost: g\r\n\r\n'],
] as const;

/** The bytes of a text in UTF-8, one character for each. */
const utf8 = (text: string) => Buffer.from(text).toString('latin1');

/** Answers with a status line, latin-1, and an empty body. */
const answerLine =
  (statusLine: string): Script =>
  async ({ request, raw }) => {
    await request.body;
    await raw(Buffer.from(`${statusLine}\r\nContent-Length: 0\r\n\r\n`, 'latin1'));
  };

const relayed = [
  ['in latin-1', 'HTTP/1.1 400 Requ\xeate incorrecte', 400],
  ['in UTF-8', utf8('HTTP/1.1 200 成功'), 200],
  ['with a tab', 'HTTP/1.1 429 Slow\tdown', 429],
] as const;

const refused = [
  ['a NUL', 'HTTP/1.1 200 O\0K'],
  ['a control byte', 'HTTP/1.1 200 O\x01K'],
  ['an escape', 'HTTP/1.1 200 \x1b[31mOK'],
  ['a DEL', 'HTTP/1.1 200 O\x7fK'],
  ['a bare CR', 'HTTP/1.1 200 O\rX-Injected: 1'],
] as const;

describe.each([1, 2])('with %i workers', (workers) => {
  describe.each(requests)('on %s', (method, bytes) => {
    /** A replica that answers with this line, and another one with a request that waits. */
    async function setUp(line: string, otherScript: Script) {
      const parts = new AsyncDisposableStack();
      const other = parts.use(await startFakeReplica({ name: 'other', script: otherScript }));
      const replica = parts.use(await startFakeReplica({ script: answerLine(line) }));
      const replicas = [{ ...other, models: ['other'] }, replica];
      const gateway = parts.use(await startGateway({ replicas, config: { gateway: { workers } } }));
      // GET /v1/models goes to both by turns: the first one is the other's.
      const waiting = parts.use(await RawConnection.open(gateway.url));
      waiting.write(method === 'POST' ? postBytes('/v1/chat/completions', '{"model":"other"}') : bytes);
      await other.untilRequests(1);
      return { gateway, other, waiting, [Symbol.asyncDispose]: () => parts.disposeAsync() };
    }

    test.for(relayed)('a reason phrase %s reaches the client byte for byte', async ([, line, status]) => {
      await using scene = await setUp(line, hang);
      const { gateway, other, waiting } = scene;

      const response = await exchangeRaw(gateway.url, bytes);

      expect(response.statusLine).toBe(line);
      expect(response.header('x-request-id')).toHaveLength(1);
      if (method === 'POST') expect(await gateway.nextRecord()).toMatchObject({ status, replica: 'a' });
      expect((await exchangeRaw(gateway.url, CHAT)).statusLine).toBe(line);
      expect(waiting.isClosed).toBe(false);
      expect(other.requests[0]?.isAborted).toBe(false);
    });

    test.for(refused)('a reason phrase with %s is a 502, and harms no other request', async ([, line]) => {
      const gate = createGate();
      await using scene = await setUp(line, gate.script);
      const { gateway, waiting } = scene;

      const response = await exchangeRaw(gateway.url, bytes);

      expect(response.statusLine).toBe('HTTP/1.1 502 Bad Gateway');
      expect(JSON.parse(response.body.toString())).toMatchObject({ error: { code: 'upstream_failed' } });
      expect(response.header('x-injected')).toEqual([]);
      if (method === 'POST') {
        expect(await gateway.nextRecord()).toMatchObject({
          status: 502,
          error_type: 'upstream_failed',
          replica: 'a',
        });
      }
      gate.open();
      expect((await waiting.readResponse()).status).toBe(200);
    });
  });
});

test('an empty reason phrase is none', async () => {
  await using replica = await startFakeReplica({ script: answerLine('HTTP/1.1 200 ') });
  await using gateway = await startGateway({ replicas: [replica] });

  const response = await exchangeRaw(gateway.url, CHAT);

  expect(response.status).toBe(200);
  expect(await gateway.nextRecord()).toMatchObject({ status: 200, replica: 'a' });
});
