import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import { answerJson, startFakeReplica } from '#testkit/fake-replica.ts';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';
import { exchangeRaw, postBytes, RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const run = promisify(execFile);

const oddBodies: readonly (readonly [name: string, text: string])[] = [
  ['numbers beyond 2^53', '{"model":"m","seed":12345678901234567890,"x":[1e400,-0,1.10,1E+2]}'],
  ['duplicate keys', '{"model":"x","a":1,"model":"m","a":2}'],
  ['key order and integer-like keys', '{"2":1,"model":"m","1":2,"b":0,"a":0}'],
  ['escapes', '{"model":"\\u006d","x":"\\/\\u00e9\\ud83d\\ude00\\ud800","y":"\\b\\f"}'],
  ['white space', ' \t\r\n{ "model" :\n"m" ,\t"x" : [ ] } \n'],
  ['a byte order mark', '\ufeff{"model":"m"}'],
  ['text beyond ASCII', '{"model":"m","x":"é😀\u2028\u0085"}'],
  ['__proto__', '{"model":"m","__proto__":{"x":1},"constructor":0}'],
];

describe('a request body', () => {
  test.for(oddBodies)('with %s reaches the replica byte for byte', async ([, text]) => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', text));

    expect(response.status).toBe(200);
    expect((await (await replica.nextRequest()).body).toString()).toBe(text);
  });

  test('with bytes that are no UTF-8 inside a string is relayed as it is, or refused, never repaired', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const bytes = Buffer.from('{"model":"m","x":"caf\xe9"}', 'latin1');

    const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', bytes));

    if (response.status === 200) expect(await (await replica.nextRequest()).body).toEqual(bytes);
    else expect(response.status).toBe(400);
  });

  test('that came in chunks goes upstream with a Content-Length', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(
      gateway.url,
      'POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nTransfer-Encoding: chunked\r\n\r\n' +
        '5;ext=1\r\n{"mod\r\n8\r\nel":"m"}\r\n0\r\nX-Trailer: 1\r\n\r\n',
    );

    expect(response.status).toBe(200);
    const received = await replica.nextRequest();
    expect((await received.body).toString()).toBe('{"model":"m"}');
    expect(received.header('content-length')).toEqual(['13']);
    expect(received.header('transfer-encoding')).toEqual([]);
  });

  test('that comes byte by byte arrives whole', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    using connection = await RawConnection.open(gateway.url);
    connection.socket.setNoDelay(true);

    for (const byte of postBytes('/v1/embeddings', '{"model":"m","input":"x"}')) {
      await new Promise((resolve) => connection.socket.write(Buffer.of(byte), resolve));
    }

    expect((await connection.readResponse()).status).toBe(200);
    expect((await (await replica.nextRequest()).body).toString()).toBe('{"model":"m","input":"x"}');
  });

  test('of 2 MB sent by curl, which waits for 100 Continue, passes', async () => {
    const directory = await temporaryFolder();
    const file = join(directory, 'body.json');
    const text = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x'.repeat(2_000_000) }] });
    await writeFile(file, text);
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });

    const { stdout, stderr } = await run('curl', [
      '--silent',
      '--verbose',
      '--max-time',
      '20',
      '--data-binary',
      `@${file}`,
      `${gateway.url}/v1/chat/completions`,
    ]);

    expect(stderr).toMatch(/> Expect: 100-continue/);
    expect(stderr).toMatch(/< HTTP\/1.1 100 Continue/);
    expect(JSON.parse(stdout)).toMatchObject({ object: 'chat.completion' });
    expect((await (await replica.nextRequest()).body).equals(Buffer.from(text))).toBe(true);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200, prompt_chars: 2_000_000 });
  });
});

describe('a response body', () => {
  test.for(oddBodies)('with %s reaches the client byte for byte', async ([, text]) => {
    await using replica = await startFakeReplica({ script: answerJson(text) });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await exchangeRaw(gateway.url, postBytes('/v1/chat/completions', '{"model":"m"}'));

    expect(response.body.toString()).toBe(text);
    expect(await gateway.nextRecord()).toMatchObject({ status: 200, stream: false });
  });

  test('of any type is relayed: binary, empty, without a Content-Type', async () => {
    const bytes = Buffer.from(Array.from({ length: 256 }, (_, i) => i));
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    replica.answerOnce(async ({ request, head, end }) => {
      await request.body;
      await head(200, ['Content-Type', 'application/octet-stream']);
      end(bytes);
    });
    replica.answerOnce(async ({ request, head, end }) => {
      await request.body;
      await head(204);
      end();
    });
    replica.answerOnce(async ({ request, head, end }) => {
      await request.body;
      await head(200, ['Content-Length', '3']);
      end('abc');
    });

    const statuses: number[] = [];
    const bodies: Buffer[] = [];
    for (let i = 0; i < 3; i++) {
      const response = await gateway.chat();
      statuses.push(response.status);
      bodies.push(Buffer.from(await response.arrayBuffer()));
    }

    expect(statuses).toEqual([200, 204, 200]);
    expect(bodies).toEqual([bytes, Buffer.alloc(0), Buffer.from('abc')]);
    expect(await gateway.waitForRecords(3)).toHaveLength(3);
  });

  test('that ends with the connection, as HTTP/1.0 does it, is whole', async () => {
    await using replica = await startFakeReplica({
      script: async ({ request, raw, cut }) => {
        await request.body;
        await raw(
          'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{"usage":{"prompt_tokens":5}}',
        );
        cut();
      },
    });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await gateway.chat();

    expect(await response.text()).toBe('{"usage":{"prompt_tokens":5}}');
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ status: 200, prompt_tokens: 5 });
    expect(record.truncated).toBeUndefined();
  });

  test('of many megabytes of embeddings passes whole, and its usage is read', async () => {
    const numbers = Array.from({ length: 300_000 }, (_, i) => i / 7);
    const body = {
      object: 'list',
      data: [{ object: 'embedding', index: 0, embedding: numbers }],
      model: 'm',
      usage: { prompt_tokens: 42, total_tokens: 42 },
    };
    await using replica = await startFakeReplica({ script: answerJson(body) });
    await using gateway = await startGateway({ replicas: [replica] });

    const response = await gateway.post('/v1/embeddings', { model: 'm', input: ['abc', 'de'] });

    expect(await response.text()).toBe(JSON.stringify(body));
    expect(await gateway.nextRecord()).toMatchObject({
      endpoint: '/v1/embeddings',
      prompt_tokens: 42,
      prompt_chars: 5,
    });
  });
});
