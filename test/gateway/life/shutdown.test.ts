import { describe, expect, test } from 'vitest';
import { chatChunk, DONE, hang, partial, startFakeReplica } from '#testkit/fake-replica.ts';
import { createStreamGate } from '#testkit/gates.ts';
import { postBytes, RawConnection, type RawResponse } from '#testkit/raw-http.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const PLAIN = '{"model":"m"}';
const STREAMED = '{"model":"m","stream":true}';

describe('a shutdown', () => {
  const grace = { shutdown: { grace: '30ms' } };

  /** Sends a request that waits in the phase the test wants, closes the gateway, and returns the answer. */
  async function closeDuring(
    gateway: StartedGateway,
    bytes: Uint8Array,
    untilInPhase: (client: RawConnection) => Promise<unknown>,
  ): Promise<RawResponse> {
    using client = await RawConnection.open(gateway.url);
    client.write(bytes);
    await untilInPhase(client);
    const [response, result] = await Promise.all([client.readResponse(), gateway.close()]);
    expect(result).toEqual({ cutRequests: 1, undeliveredRecords: 0 });
    expect(gateway.records).toHaveLength(1);
    return response;
  }

  test('whose time is up ends a request that waits for headers with 503', async () => {
    await using replica = await startFakeReplica({ script: hang });
    await using gateway = await startGateway({ replicas: [replica], config: grace });

    const response = await closeDuring(gateway, postBytes('/v1/chat/completions', PLAIN), () =>
      replica.nextRequest(),
    );

    expect(response.status).toBe(503);
    expect(JSON.parse(response.body.toString())).toMatchObject({ error: { type: 'server_error' } });
    expect(gateway.records[0]).toMatchObject({ status: 503, error_type: 'shutting_down', replica: 'a' });
    await replica.requests[0]?.untilAborted();
  });

  test('whose time is up ends a request that is being uploaded with 503', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica], config: grace });
    const bytes = postBytes('/v1/chat/completions', PLAIN, ['Expect: 100-continue']);

    const response = await closeDuring(gateway, bytes.subarray(0, -1), (client) => client.readResponse());

    expect(response.status).toBe(503);
    expect(gateway.records[0]).toMatchObject({ status: 503, error_type: 'shutting_down' });
  });

  test('waits for the rest of a head that has come in part', async () => {
    await using replica = await startFakeReplica();
    const config = { timeouts: { client_headers: '300ms' } };
    await using gateway = await startGateway({ replicas: [replica], config });
    const bytes = postBytes('/v1/chat/completions', PLAIN);
    using client = await RawConnection.open(gateway.url);
    // The part comes with the request before it, so it has been read when that one has its answer.
    client.write(Buffer.concat([bytes, bytes.subarray(0, 20)]));
    await client.readResponse();

    const closing = gateway.close();
    const response = await client.readResponse();
    client.socket.end(); // otherwise the gateway lingers for five seconds
    const result = await closing;

    expect(response.status).toBe(408);
    expect(result).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
  });

  test('whose time is up breaks a stream, and says so in an error event', async () => {
    await using replica = await startFakeReplica({
      script: partial('text/event-stream', [chatChunk('x')], 'nothing'),
    });
    await using gateway = await startGateway({ replicas: [replica], config: grace });

    const response = await closeDuring(gateway, postBytes('/v1/chat/completions', STREAMED), (client) =>
      client.untilBuffered(chatChunk('x')),
    );

    expect(response.body.toString()).toContain(chatChunk('x'));
    expect(response.body.toString()).toContain('data: {"error":{');
    expect(response.body.toString()).toContain('"code":"shutting_down"');
    expect(response.body.toString()).not.toContain('[DONE]');
    expect(gateway.records[0]).toMatchObject({
      status: 200,
      error_type: 'shutting_down',
      truncated: true,
      stream: true,
    });
    await replica.requests[0]?.untilAborted();
  });

  test('whose time is up destroys the connection of a plain answer in the middle', async () => {
    await using replica = await startFakeReplica({
      script: partial('application/json', ['{"x":'], 'nothing'),
    });
    await using gateway = await startGateway({ replicas: [replica], config: grace });

    const response = await closeDuring(gateway, postBytes('/v1/chat/completions', PLAIN), (client) =>
      client.untilBuffered('{"x":'),
    );

    expect(response.isComplete).toBe(false);
    expect(gateway.records[0]).toMatchObject({ status: 200, error_type: 'shutting_down', truncated: true });
  });

  test('waits for requests in flight, refuses new connections, and cuts nothing', async () => {
    const gate = createStreamGate([], DONE);
    await using replica = await startFakeReplica({ script: gate.script });
    await using gateway = await startGateway({ replicas: [replica] });
    using client = await RawConnection.open(gateway.url);
    using idleClient = await RawConnection.open(gateway.url);
    client.write(postBytes('/v1/chat/completions', STREAMED));
    await client.readHead();

    const closing = gateway.close();
    await idleClient.readToClose();
    await expect(fetch(`${gateway.url}/healthz`)).rejects.toThrow();
    gate.open();

    expect((await client.readPiece())?.toString()).toBe(DONE);
    expect(await closing).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
    expect(gateway.records).toMatchObject([{ status: 200, stream: true }]);
    await client.readToClose();
  });

  test('goes on checking replicas while it waits for requests in flight', async () => {
    const gate = createStreamGate([], DONE);
    await using replica = await startFakeReplica({ script: gate.script });
    await using gateway = await startGateway({
      replicas: [replica],
      config: { health: { interval: '10ms' }, shutdown: { grace: '1m' } },
    });
    const response = await gateway.chat({ stream: true });

    const closing = gateway.close();
    await replica.untilProbes(replica.probes.length + 3);
    gate.open();
    await response.text();
    expect(await closing).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
  });

  test('answers /healthz with 503 during shutdown.delay, and goes on serving', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      config: { shutdown: { delay: '300ms' } },
    });

    const closing = gateway.close();
    const health = await fetch(`${gateway.url}/healthz`);
    const response = await gateway.chat();

    expect(health.status).toBe(503);
    expect(response.status).toBe(200);
    await closing;
    expect(gateway.records).toMatchObject([{ status: 200 }]);
  });

  test('keeps a connection through shutdown.delay as promised, and says with its next answer that it ends', async () => {
    const gate = createStreamGate([], DONE);
    await using replica = await startFakeReplica({ script: gate.script });
    await using gateway = await startGateway({
      replicas: [replica],
      config: { shutdown: { delay: '1s' } },
    });
    using client = await RawConnection.open(gateway.url);
    client.write(postBytes('/v1/chat/completions', STREAMED));
    expect((await client.readHead()).header('connection')).not.toContain('close');

    const closing = gateway.close();
    gate.open();
    while ((await client.readPiece()) !== null);
    client.write(postBytes('/v1/chat/completions', STREAMED));

    expect((await client.readHead()).header('connection')).toEqual(['close']);
    await client.readToClose();
    expect(await closing).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
    expect(gateway.records).toMatchObject([{ status: 200 }, { status: 200 }]);
  });

  test('closes a connection whose client keeps it after its last answer', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({ replicas: [replica] });
    using client = await RawConnection.open(gateway.url);
    client.write(postBytes('/v1/chat/completions', PLAIN));
    await client.readResponse();

    await Promise.all([client.readToClose(), gateway.close()]);
  });
});
