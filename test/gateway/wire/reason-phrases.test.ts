import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { type FakeReplica, hang, type Script, startFakeReplica } from '#testkit/fake-replica.ts';
import { createGate } from '#testkit/gates.ts';
import { exchangeRaw, postBytes, RawConnection, type RawResponse } from '#testkit/raw-http.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

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
    let other: FakeReplica;
    let replica: FakeReplica;
    let gateway: StartedGateway;

    beforeAll(async () => {
      [other, replica] = [await startFakeReplica({ name: 'other' }), await startFakeReplica()];
      const replicas = [{ ...other, models: ['other'] }, replica];
      gateway = await startGateway({ replicas, config: { gateway: { workers } } });
    });

    afterAll(async () => {
      for (const each of [gateway, other, replica]) await each.close();
    });

    /** Lets the replica answer with this line, and the other one with a request that waits: its connection is returned. */
    async function setUp(line: string, otherScript: Script): Promise<RawConnection> {
      replica.answer(answerLine(line));
      other.answer(otherScript);
      const waiting = await RawConnection.open(gateway.url);
      // GET /v1/models goes to both by turns: the first one of two is the other's.
      waiting.write(method === 'POST' ? postBytes('/v1/chat/completions', '{"model":"other"}') : bytes);
      await other.untilRequests(other.requests.length + 1);
      return waiting;
    }

    async function recordOf(response: RawResponse): Promise<Readonly<RequestRecord>> {
      const id = response.header('x-request-id')[0];
      for (;;) {
        const record = await gateway.nextRecord();
        if (record.request_id === id) return record;
      }
    }

    test.for(relayed)('a reason phrase %s reaches the client byte for byte', async ([, line, status]) => {
      using waiting = await setUp(line, hang);

      const response = await exchangeRaw(gateway.url, bytes);

      expect(response.statusLine).toBe(line);
      expect(response.header('x-request-id')).toHaveLength(1);
      if (method === 'POST') expect(await recordOf(response)).toMatchObject({ status, replica: 'a' });
      expect((await exchangeRaw(gateway.url, CHAT)).statusLine).toBe(line);
      expect(waiting.isClosed).toBe(false);
      expect(other.requests.at(-1)?.isAborted).toBe(false);
    });

    test.for(refused)('a reason phrase with %s is a 502, and harms no other request', async ([, line]) => {
      const gate = createGate();
      using waiting = await setUp(line, gate.script);

      const response = await exchangeRaw(gateway.url, bytes);

      expect(response.statusLine).toBe('HTTP/1.1 502 Bad Gateway');
      expect(JSON.parse(response.body.toString())).toMatchObject({ error: { code: 'upstream_failed' } });
      expect(response.header('x-injected')).toEqual([]);
      if (method === 'POST') {
        expect(await recordOf(response)).toMatchObject({
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
