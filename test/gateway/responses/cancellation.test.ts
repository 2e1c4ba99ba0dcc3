import { describe, expect, test } from 'vitest';
import {
  chatChunk,
  DONE,
  hang,
  refusedUrlBeside,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { createStreamGate } from '#testkit/gates.ts';
import { postBytes, RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const PLAIN = '{"model":"m"}';
const STREAMED = '{"model":"m","stream":true}';

describe('a client that leaves', () => {
  test('while it uploads: no replica sees anything, the record says 499', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    using client = await RawConnection.open(gateway.url);
    const bytes = postBytes('/v1/chat/completions', PLAIN, ['Expect: 100-continue']);
    client.write(bytes.subarray(0, -1));
    // The 100 tells that the gateway reads the body.
    expect((await client.readResponse()).status).toBe(100);

    client[Symbol.dispose]();

    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ status: 499, error_type: 'client_closed', stream: false });
    expect(record.replica).toBeUndefined();
    expect(record.model).toBeUndefined();
    expect(record.truncated).toBeUndefined();
    expect(replica.requests).toEqual([]);
  });

  const waiting: readonly (readonly [phase: string, body: string, script: Script])[] = [
    ['before the headers of a plain answer', PLAIN, hang],
    ['before the headers of a stream', STREAMED, hang],
  ];
  test.for(waiting)('%s: the replica is told at once, the record says 499', async ([, body, script]) => {
    await using replica = await startFakeReplica({ script });
    await using gateway = await startGateway({ replicas: [replica] });
    using client = await RawConnection.open(gateway.url);
    client.write(postBytes('/v1/chat/completions', body));
    const received = await replica.nextRequest();

    client[Symbol.dispose]();

    await received.untilAborted();
    expect(await gateway.nextRecord()).toMatchObject({
      status: 499,
      error_type: 'client_closed',
      replica: 'a',
      model: 'm',
      attempts: 1,
    });
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
  });

  test('in mid-stream: the replica is told at once, the record has what came until then', async () => {
    await using replica = await startFakeReplica({
      script: async ({ request, head, write }) => {
        await request.body;
        await head(200, ['Content-Type', 'text/event-stream']);
        await write(chatChunk('one'));
      },
    });
    await using gateway = await startGateway({ replicas: [replica] });
    using client = await RawConnection.open(gateway.url);
    client.write(postBytes('/v1/chat/completions', STREAMED));
    await client.readHead();
    await client.readPiece();

    client[Symbol.dispose]();

    await (await replica.nextRequest()).untilAborted();
    expect(await gateway.nextRecord()).toMatchObject({
      status: 200,
      stream: true,
      error_type: 'client_closed',
      truncated: true,
      ttft_ms: expect.any(Number),
    });
    expect(await gateway.replicas()).toMatchObject([{ inflight: 0 }]);
  });

  test('in the middle of a plain answer: the replica is told at once', async () => {
    await using replica = await startFakeReplica({
      script: async ({ request, head, write }) => {
        await request.body;
        await head(200, ['Content-Type', 'application/json', 'Content-Length', '100']);
        await write('{"usage"');
      },
    });
    await using gateway = await startGateway({ replicas: [replica] });
    using client = await RawConnection.open(gateway.url);
    client.write(postBytes('/v1/chat/completions', PLAIN));
    await client.readHead();

    client[Symbol.dispose]();

    await (await replica.nextRequest()).untilAborted();
    expect(await gateway.nextRecord()).toMatchObject({
      status: 200,
      stream: false,
      error_type: 'client_closed',
      truncated: true,
    });
  });

  test('while a connection to a replica is being tried: nothing is tried any more', async () => {
    await using replica = await startFakeReplica({ name: 'b', script: hang });
    await using gateway = await startGateway({
      replicas: [{ name: 'a', url: refusedUrlBeside(replica) }, replica],
    });
    using client = await RawConnection.open(gateway.url);
    client.write(postBytes('/v1/chat/completions', PLAIN));
    const received = await replica.nextRequest();

    client[Symbol.dispose]();

    await received.untilAborted();
    expect(await gateway.nextRecord()).toMatchObject({ status: 499, attempts: 2, replica: 'b' });
  });

  test('from GET /v1/models: the replica is told as well, without a record', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startGateway({ replicas: [replica] });
    using client = await RawConnection.open(gateway.url);
    client.write('GET /v1/models HTTP/1.1\r\nHost: g\r\n\r\n');
    const received = await replica.nextRequest();

    client[Symbol.dispose]();

    await received.untilAborted();
    await gateway.close();
    expect(gateway.records).toEqual([]);
  });

  test('of pipelined requests: the one that was begun leaves its record, those behind it were never begun', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startGateway({ replicas: [replica] });
    using client = await RawConnection.open(gateway.url);
    const bytes = postBytes('/v1/chat/completions', PLAIN);
    client.write(Buffer.concat([bytes, bytes, bytes]));
    const [received] = await replica.untilRequests(1);

    client[Symbol.dispose]();

    await received?.untilAborted();
    expect(await gateway.nextRecord()).toMatchObject({ status: 499 });
    await gateway.close();
    expect(gateway.records).toHaveLength(1);
    expect(replica.requests).toHaveLength(1);
  });

  test('by a reset in the middle of its stream harms no other', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    const gate = createStreamGate([chatChunk('one')], DONE);
    replica.answer(gate.script);
    using leaving = await RawConnection.open(gateway.url);
    using staying = await RawConnection.open(gateway.url);
    for (const client of [leaving, staying]) {
      client.write(postBytes('/v1/chat/completions', STREAMED));
      await client.readHead();
    }

    leaving.socket.resetAndDestroy();
    await (await replica.nextRequest()).untilAborted();
    gate.open();

    const pieces: string[] = [];
    for (let piece = await staying.readPiece(); piece !== null; piece = await staying.readPiece()) {
      pieces.push(piece.toString());
    }
    expect(pieces.join('')).toBe(chatChunk('one') + DONE);
    expect(await gateway.waitForRecords(2)).toHaveLength(2);
  });

  test('by closing its own half of the connection counts as gone, as no more can be known of it', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startGateway({ replicas: [replica] });
    using client = await RawConnection.open(gateway.url);
    client.write(postBytes('/v1/chat/completions', PLAIN));
    const received = await replica.nextRequest();

    client.socket.end();

    await received.untilAborted();
    expect(await gateway.nextRecord()).toMatchObject({ status: 499, error_type: 'client_closed' });
  });
});
