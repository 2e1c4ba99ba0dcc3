import { describe, expect, test } from 'vitest';
import { answerJson, answerRaw, answerStream, DONE, startFakeReplica } from '#testkit/fake-replica.ts';
import { exchangeRaw, postBytes, type RawResponse } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const BODY = '{"model":"m"}';

/** Lets a replica answer with these fields, and returns what the client got. */
async function responseWith(fields: readonly string[], body = '{}'): Promise<RawResponse> {
  await using replica = await startFakeReplica({ script: answerJson(body, { fields }) });
  await using gateway = await startGateway({ replicas: [replica] });
  return await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY));
}

describe('on the way to the client', () => {
  test('fields and status line pass as they came: spelling, duplicates, two cookies', async () => {
    const response = await responseWith([
      'Set-Cookie',
      'a=1; Path=/',
      'Set-Cookie',
      'b=2; Path=/',
      'X-Upper-CASE',
      'v',
      'OpenAI-Processing-Ms',
      '12',
    ]);

    expect(response.statusLine).toBe('HTTP/1.1 200 OK');
    expect(response.header('set-cookie')).toEqual(['a=1; Path=/', 'b=2; Path=/']);
    expect(response.rawHeaders).toContain('X-Upper-CASE');
    expect(response.header('openai-processing-ms')).toEqual(['12']);
  });

  test("the replica's Content-Length is kept", async () => {
    const response = await responseWith([], '{"a": 1}');
    expect(response.header('content-length')).toEqual(['8']);
    expect(response.header('transfer-encoding')).toEqual([]);
  });

  test('hop-by-hop fields and those that Connection names stay behind', async () => {
    const response = await responseWith([
      'Connection',
      'keep-alive, X-Internal',
      'X-Internal',
      'secret',
      'Keep-Alive',
      'timeout=5, max=100',
      'Proxy-Connection',
      'keep-alive',
      'Upgrade',
      'h2c',
    ]);

    for (const name of ['x-internal', 'proxy-connection', 'upgrade']) {
      expect(response.header(name), name).toEqual([]);
    }
    expect(response.header('keep-alive').join()).not.toContain('max=100');
  });

  test('the Date is the one of the replica, and none is made up', async () => {
    const date = 'Tue, 15 Nov 1994 08:12:31 GMT';
    expect((await responseWith(['Date', date])).header('date')).toEqual([date]);
    expect((await responseWith([])).header('date')).toEqual([]);
  });

  test('bytes beyond ASCII in a value arrive as the same bytes', async () => {
    await using replica = await startFakeReplica({
      script: answerRaw(
        'HTTP/1.1 200 OK\r\nX-Latin: caf\xe9\r\nX-Utf8: caf\xc3\xa9\r\nContent-Length: 2\r\n\r\n{}',
      ),
    });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY));

    expect(response.header('x-latin')).toEqual(['caf\xe9']);
    expect(response.header('x-utf8')).toEqual(['caf\xc3\xa9']);
  });

  test('the reason phrase of the replica is relayed', async () => {
    await using replica = await startFakeReplica({
      script: answerRaw('HTTP/1.1 418 Short And Stout\r\nContent-Length: 0\r\n\r\n'),
    });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY));

    expect(response.statusLine).toBe('HTTP/1.1 418 Short And Stout');
  });

  test('an informational answer of the replica is not the answer', async () => {
    await using replica = await startFakeReplica({
      script: answerRaw(
        'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}',
      ),
    });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY));

    expect(response.status).toBe(200);
    expect(response.body.toString()).toBe('{}');
  });

  test.for([
    [200, 'chunked'],
    [429, 'with Retry-After'],
    [500, 'in any shape'],
  ] as const)("the replica's own %s is relayed verbatim, %s", async ([status]) => {
    const body = '{"detail": "Overloaded",\n "x":1e400 }';
    await using replica = await startFakeReplica({
      script: answerJson(body, { status, fields: ['Retry-After', '7'] }),
    });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', BODY));

    expect(response.status).toBe(status);
    expect(response.header('retry-after')).toEqual(['7']);
    expect(response.body.toString()).toBe(body);
    expect(await gateway.nextRecord()).toMatchObject({ status, replica: 'a' });
  });

  test('a stream has no Content-Length, even if the replica sent one: an error event may follow', async () => {
    await using replica = await startFakeReplica({
      script: async ({ request, head, end }) => {
        await request.body;
        await head(200, [
          'Content-Type',
          'text/event-stream; charset=utf-8',
          'Content-Length',
          String(DONE.length),
        ]);
        end(DONE);
      },
    });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(
      gateway.url,
      postBytes('/v1/chat/completions', '{"model":"m","stream":true}'),
    );

    expect(response.header('content-type')).toEqual(['text/event-stream; charset=utf-8']);
    expect(response.header('content-length')).toEqual([]);
    expect(response.header('transfer-encoding')).toEqual(['chunked']);
    expect(response.body.toString()).toBe(DONE);
  });

  test('to a client of HTTP/1.0 a stream ends with the connection', async () => {
    await using replica = await startFakeReplica({
      script: answerStream([DONE]),
    });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(
      gateway.url,
      `POST /v1/chat/completions HTTP/1.0\r\nHost: g\r\nContent-Length: 27\r\n\r\n{"model":"m","stream":true}`,
    );

    expect(response.header('transfer-encoding')).toEqual([]);
    expect(response.body.toString()).toBe(DONE);
  });
});
