import { describe, expect, test } from 'vitest';
import {
  answerRaw,
  jsonBytes,
  type ReceivedRequest,
  type Script,
  startFakeReplica,
} from '#testkit/fake-replica.ts';
import { postBytes, RawConnection, type RawResponse } from '#testkit/raw-http.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const STRAY = jsonBytes({ user: 'somebody else' });

/** No idle connection is closed for its age. */
const KEPT = { config: { timeouts: { upstream_keep_alive: '1h' } } };

/** A chat request that tells who sends it. */
const chatOf = (user: string) => postBytes('/v1/chat/completions', JSON.stringify({ model: 'm', user }));

const userOf = ({ body }: { readonly body: Buffer }) =>
  (JSON.parse(body.toString()) as { user: string }).user;

/** Answers with who has sent the request. */
const echo: Script = async ({ request, raw }) =>
  raw(jsonBytes({ user: userOf({ body: await request.body }) }));

/** Sends requests one after the other on one connection, and expects each one's own answer. */
async function expectOwnAnswers(gateway: StartedGateway, ...users: readonly string[]): Promise<void> {
  using client = await RawConnection.open(gateway.url);
  for (const user of users) {
    client.write(chatOf(user));
    const response = await client.readResponse();
    expect([response.status, userOf(response)]).toEqual([200, user]);
  }
}

/** What comes right behind a complete response, in the same write. */
const behind: readonly (readonly [name: string, answer: (user: string) => string])[] = [
  ['a whole response', (user) => jsonBytes({ user }) + STRAY],
  ['a part of a response', (user) => `${jsonBytes({ user })}HTTP/1.1 200 OK\r\nContent-Le`],
  ['a line end', (user) => `${jsonBytes({ user })}\r\n`],
  ['bytes that are no HTTP', (user) => `${jsonBytes({ user })}x`],
  ['an informational response', (user) => `${jsonBytes({ user })}HTTP/1.1 103 Early Hints\r\n\r\n`],
  [
    'a whole response, behind chunks',
    (user) => {
      const text = JSON.stringify({ user });
      const head = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
      return `${head}${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n${STRAY}`;
    },
  ],
];

describe('what a replica sends without being asked reaches nobody', () => {
  test.for(behind)('%s right behind a response', async ([, answer]) => {
    await using replica = await startFakeReplica({
      script: async ({ request, raw }) => raw(answer(userOf({ body: await request.body }))),
    });
    await using gateway = await startGateway({ replicas: [replica], ...KEPT });

    await expectOwnAnswers(gateway, '1');
    await replica.connections[0]?.untilClosed();
    await expectOwnAnswers(gateway, '2', '3');

    expect(replica.requests.map(({ connection }) => connection.ordinal)).toEqual([1, 2, 3]);
  });

  test('one byte behind one response: for a while each connection carries one request', async () => {
    await using replica = await startFakeReplica({ script: echo });
    await using gateway = await startGateway({ replicas: [replica], ...KEPT });
    await expectOwnAnswers(gateway, '1', '2');
    replica.answerOnce(async ({ request, raw }) =>
      raw(`${jsonBytes({ user: userOf({ body: await request.body }) })}x`),
    );

    await expectOwnAnswers(gateway, '3', '4', '5');

    expect(replica.requests.map(({ connection }) => connection.ordinal)).toEqual([1, 1, 1, 2, 3]);
  });

  test.for([
    ['a whole response', STRAY],
    ['a part of one', 'HTTP/1.1 200 OK\r\n'],
    ['one byte', 'H'],
    ['a line end', '\r\n'],
  ] as const)('%s on an idle connection, which is closed', async ([, bytes]) => {
    await using replica = await startFakeReplica({ script: echo });
    await using gateway = await startGateway({ replicas: [replica], ...KEPT });
    await expectOwnAnswers(gateway, '1');

    await replica.connections[0]?.write(bytes);
    await replica.connections[0]?.untilClosed();

    // For a while no connection to this replica is used twice.
    await expectOwnAnswers(gateway, '2', '3');
    expect(replica.requests.map(({ connection }) => connection.ordinal)).toEqual([1, 2, 3]);
  });

  test.for(['before', 'after'] as const)(
    'a response on an idle connection, just %s the next request arrives',
    async (place) => {
      await using replica = await startFakeReplica({ script: echo });
      await using gateway = await startGateway({ replicas: [replica], ...KEPT });
      using client = await RawConnection.open(gateway.url);

      for (let round = 0; round < 30; round++) {
        client.write(chatOf(`first ${round}`));
        expect(userOf(await client.readResponse())).toBe(`first ${round}`);
        const { connection } = replica.requests.at(-1) as ReceivedRequest;
        // Both are in the gateway's sockets before it can look at either.
        if (place === 'before') void connection.write(STRAY);
        client.write(chatOf(`second ${round}`));
        if (place === 'after') void connection.write(STRAY);
        expect(userOf(await client.readResponse())).toBe(`second ${round}`);
        await connection.untilClosed();
      }
    },
  );

  test('responses on many idle connections, just after the next requests arrive', async () => {
    const received = Promise.withResolvers<void>();
    await using replica = await startFakeReplica({
      script: async (exchange) => {
        await received.promise;
        await echo(exchange);
      },
    });
    await using gateway = await startGateway({ replicas: [replica], ...KEPT });
    using opened = new DisposableStack();
    const clients: RawConnection[] = [];
    for (let i = 0; i < 64; i++) clients.push(opened.use(await RawConnection.open(gateway.url)));
    const sendAll = (round: string) => {
      for (const [i, client] of clients.entries()) client.write(chatOf(`${round} ${i}`));
    };
    const usersOf = () => Promise.all(clients.map(async (client) => userOf(await client.readResponse())));
    // All are in flight at one time, so that each leaves an idle connection behind.
    sendAll('first');
    await replica.untilRequests(64);
    received.resolve();
    await usersOf();
    replica.answer(echo);

    sendAll('second');
    for (const connection of replica.connections) void connection.write(STRAY);

    expect(await usersOf()).toEqual(clients.map((_, i) => `second ${i}`));
  });

  test.for([
    ['204', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nstray'],
    ['304', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nstray'],
    ['204 in chunks', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nstray\r\n0\r\n\r\n'],
  ] as const)('a body behind a %s', async ([status, bytes]) => {
    await using replica = await startFakeReplica({ script: answerRaw(bytes) });
    await using gateway = await startGateway({ replicas: [replica], ...KEPT });
    using client = await RawConnection.open(gateway.url);

    client.write(chatOf('1'));
    expect((await client.readResponse()).status).toBe(Number(status.slice(0, 3)));
    await replica.connections[0]?.untilClosed();
    replica.answer(echo);
    client.write(chatOf('2'));

    expect(userOf(await client.readResponse())).toBe('2');
  });
});

describe('a response without a body is one that a client cannot misread', () => {
  /** What a client gets for these bytes of a replica, and then for the next request on its connection. */
  async function relay(bytes: string): Promise<readonly [RawResponse, RawResponse]> {
    await using replica = await startFakeReplica({ script: answerRaw(bytes) });
    await using gateway = await startGateway({ replicas: [replica], ...KEPT });
    using client = await RawConnection.open(gateway.url);
    client.write(chatOf('1'));
    const first = await client.readResponse();
    replica.answer(echo);
    client.write(chatOf('2'));
    return [first, await client.readResponse()];
  }

  test.for([
    ['Content-Length: 5', 'HTTP/1.1 204 No Content\r\nContent-Length: 5\r\nX-A: 1\r\n\r\n'],
    ['Content-Length: 0', 'HTTP/1.1 204 No Content\r\nContent-Length: 0\r\nX-A: 1\r\n\r\n'],
    ['Transfer-Encoding', 'HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\nX-A: 1\r\n\r\n'],
    ['no length', 'HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n'],
  ] as const)('a 204 with %s says nothing of a body', async ([, bytes]) => {
    const [response, next] = await relay(bytes);

    expect(response.status).toBe(204);
    expect(response.header('content-length')).toEqual([]);
    expect(response.header('transfer-encoding')).toEqual([]);
    expect(response.header('x-a')).toEqual(['1']);
    expect(userOf(next)).toBe('2');
  });

  test.for([
    ['Content-Length', 'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: "x"\r\n\r\n'],
    ['no length', 'HTTP/1.1 304 Not Modified\r\nETag: "x"\r\n\r\n'],
  ] as const)('a 304 with %s has no body', async ([, bytes]) => {
    const [response, next] = await relay(bytes);

    expect(response.status).toBe(304);
    expect(response.header('transfer-encoding')).toEqual([]);
    expect(response.header('etag')).toEqual(['"x"']);
    expect(userOf(next)).toBe('2');
  });

  test('a 205 and an empty 200 keep their length', async () => {
    for (const status of ['205 Reset Content', '200 OK']) {
      const [response, next] = await relay(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`);
      expect(response.header('content-length')).toEqual(['0']);
      expect(userOf(next)).toBe('2');
    }
  });
});
