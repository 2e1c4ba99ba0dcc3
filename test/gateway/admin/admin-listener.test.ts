import { describe, expect, onTestFinished, test } from 'vitest';
import { type FakeReplica, hang, startFakeReplica } from '#testkit/fake-replica.ts';
import { RawConnection } from '#testkit/raw-http.ts';
import { ADMIN_TOKEN, type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

const WITH_TOKEN = `Authorization: Bearer ${ADMIN_TOKEN}`;
const SHORT = { timeouts: { client_headers: '200ms' } };

async function startAdmin(config: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {}) {
  const replica = await startFakeReplica({ name: 'a' });
  onTestFinished(() => replica[Symbol.asyncDispose]());
  const gateway = await startGateway({ replicas: [replica], config });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  return { gateway, replica };
}

const head = (target: string, ...fields: readonly string[]) =>
  `${[`${target} HTTP/1.1`, 'Host: localhost', ...fields].join('\r\n')}\r\n\r\n`;

const codeOf = (body: Buffer) => JSON.parse(body.toString()).error.code;

async function open(gateway: StartedGateway): Promise<RawConnection> {
  const connection = await RawConnection.open(gateway.adminUrl);
  onTestFinished(() => connection[Symbol.dispose]());
  return connection;
}

/** Keeps a request in flight on the replica until the returned function is called. */
async function keepBusy(gateway: StartedGateway, replica: FakeReplica): Promise<() => Promise<void>> {
  replica.answer(hang);
  const leave = new AbortController();
  const left = gateway.chat({}, { signal: leave.signal }).catch(() => null);
  await replica.untilRequests(1);
  return async () => {
    leave.abort();
    await left;
  };
}

/** Writes endlessly, as fast as the other side reads. */
function writeEndlessly({ socket }: RawConnection, bytes: string): void {
  const write = () => {
    while (!socket.destroyed && socket.write(bytes));
    if (!socket.destroyed) socket.once('drain', write);
  };
  write();
}

describe('an unexpected body', () => {
  const CHUNK = `10000\r\n${'x'.repeat(0x10000)}\r\n`;

  test.for([
    ['with the token', [WITH_TOKEN]],
    ['without a token', []],
  ] as const)('that does not end is rejected, %s, and the client can read why', async ([, fields]) => {
    const { gateway } = await startAdmin();
    const connection = await open(gateway);
    connection.write(head('POST /admin/replicas/a/drain', ...fields, 'Transfer-Encoding: chunked'));
    writeEndlessly(connection, CHUNK);
    const answer = await connection.readResponse();
    expect([answer.status, codeOf(answer.body)]).toEqual([413, 'request_too_large']);
    expect(answer.header('connection')).toEqual(['close']);
    await connection.readToClose();
    expect(await gateway.replicas()).toMatchObject([{ drained: false }]);
  });

  test('that is declared as too large is rejected before it is sent', async () => {
    const { gateway } = await startAdmin();
    const connection = await open(gateway);
    connection.write(head('GET /admin/stats', WITH_TOKEN, 'Content-Length: 70000', 'Expect: 100-continue'));
    expect(await connection.readResponse()).toMatchObject({ status: 413 });
    await connection.readToClose();
  });

  test.for([
    ['of a declared length', ['Content-Length: 1000'], 'x'],
    ['in chunks', ['Transfer-Encoding: chunked'], '1\r\nx\r\n'],
  ] as const)(
    '%s that comes too slowly is rejected after the timeout for a head',
    async ([, fields, first]) => {
      const { gateway } = await startAdmin(SHORT);
      const connection = await open(gateway);
      connection.write(head('GET /admin/stats', WITH_TOKEN, ...fields));
      connection.write(first);
      const answer = await connection.readResponse();
      expect([answer.status, codeOf(answer.body)]).toEqual([408, 'request_timeout']);
      expect(answer.header('connection')).toEqual(['close']);
      await connection.readToClose();
    },
  );

  test('that is malformed is rejected', async () => {
    const { gateway } = await startAdmin();
    const connection = await open(gateway);
    connection.write(`${head('GET /admin/stats', WITH_TOKEN, 'Transfer-Encoding: chunked')}zz\r\n`);
    expect(await connection.readResponse()).toMatchObject({ status: 400 });
    await connection.readToClose();
  });

  test('that is small is ignored, and the connection stays open', async () => {
    const { gateway } = await startAdmin();
    const connection = await open(gateway);
    const call = head(
      'POST /admin/replicas/a/drain',
      WITH_TOKEN,
      'Content-Length: 2',
      'Expect: 100-continue',
    );
    for (let time = 0; time < 2; time++) {
      connection.write(call);
      expect(await connection.readResponse()).toMatchObject({ status: 100 });
      connection.write('{}');
      expect(await connection.readResponse()).toMatchObject({ status: 200 });
    }
  });
});

describe('one connection', () => {
  const GET = head('GET /admin/stats', WITH_TOKEN);

  test('gets the responses to pipelined calls in order', async () => {
    const { gateway } = await startAdmin();
    const connection = await open(gateway);
    connection.write(GET + head('GET /admin/nothing', WITH_TOKEN) + head('GET /admin/stats'));
    const statuses = [];
    for (let call = 0; call < 3; call++) statuses.push((await connection.readResponse()).status);
    expect(statuses).toEqual([200, 404, 401]);
    connection.write(GET);
    expect(await connection.readResponse()).toMatchObject({ status: 200 });
  });

  test('has one call handled at a time, and is closed after the responses when it sends too many', async () => {
    const { gateway, replica } = await startAdmin();
    const leave = await keepBusy(gateway, replica);
    const connection = await open(gateway);
    connection.write(head('POST /admin/replicas/a/drain?wait=1h', WITH_TOKEN).repeat(1_000));
    await gateway.untilLogged('"drain"');
    expect(await gateway.replicas()).toMatchObject([{ drained: true, inflight: 1 }]);
    expect(gateway.logLines.filter((line) => line.includes('"drain"'))).toHaveLength(1);
    await leave();
    // The calls that waited get responses too.
    for (let call = 0; call < 9; call++) {
      expect(await connection.readResponse()).toMatchObject({ status: 200 });
    }
    expect(await connection.readToClose()).toHaveLength(0);
  });

  test('that disconnects while its calls wait ends them', async () => {
    const { gateway, replica } = await startAdmin();
    const leave = await keepBusy(gateway, replica);
    const connection = await open(gateway);
    connection.write(head('POST /admin/replicas/a/drain?wait=1h', WITH_TOKEN).repeat(100));
    await gateway.untilLogged('"drain"');
    connection.socket.end();
    await connection.readToClose();
    await leave();
    expect(gateway.logLines.filter((line) => line.includes('"drain"'))).toHaveLength(1);
  });

  test('that announced its close gets its response, whatever it sends afterwards', async () => {
    const { gateway } = await startAdmin();
    const connection = await open(gateway);
    connection.write(head('GET /admin/stats', WITH_TOKEN, 'Connection: close') + 'x'.repeat(100_000));
    expect(await connection.readResponse()).toMatchObject({ status: 200 });
    expect(await connection.readToClose()).toHaveLength(0);
  });

  test('gets the response to its call before the error about a malformed next one', async () => {
    const { gateway } = await startAdmin();
    const connection = await open(gateway);
    connection.write(`${GET}nonsense\r\n\r\n`);
    expect(await connection.readResponse()).toMatchObject({ status: 200 });
    expect(await connection.readResponse()).toMatchObject({ status: 400 });
    await connection.readToClose();
  });

  test('that is never used is closed silently, and one with an incomplete head gets an error', async () => {
    const { gateway } = await startAdmin(SHORT);
    const [unused, slow] = [await open(gateway), await open(gateway)];
    slow.write('GET /admin/stats HTTP/1.1\r\nHost:');
    expect(await unused.readToClose()).toHaveLength(0);
    const answer = await slow.readResponse();
    expect([answer.status, answer.header('connection')]).toEqual([408, ['close']]);
    await slow.readToClose();
  });
});

describe('too many', () => {
  test('a connection beyond a thousand is refused, which is logged, and those that are idle are closed for the next ones', async () => {
    const { gateway } = await startAdmin();
    const held = await Promise.all(Array.from({ length: 1_000 }, () => open(gateway)));
    expect(await (await open(gateway)).readToClose()).toHaveLength(0);
    // Those that nobody uses give their places to the next ones, half a second after they were opened.
    const [oldest] = held;
    while (oldest?.isClosed === false) {
      await Promise.race([(await open(gateway)).readToClose(), oldest.readToClose()]);
    }
    const next = await open(gateway);
    next.write(head('GET /admin/stats', WITH_TOKEN));
    expect(await next.readResponse()).toMatchObject({ status: 200 });
    expect(gateway.logLines.filter((line) => line.includes('admin connections refused'))).toHaveLength(1);
  });

  test('waits are refused beyond five hundred', async () => {
    const { gateway, replica } = await startAdmin();
    const leave = await keepBusy(gateway, replica);
    const held = await Promise.all(Array.from({ length: 500 }, () => open(gateway)));
    for (const connection of held) {
      connection.write(head('POST /admin/replicas/a/drain?wait=1h', WITH_TOKEN));
    }
    const drain = (wait: string) => gateway.admin(`/admin/replicas/a/drain?wait=${wait}`, { method: 'POST' });
    let refused = await drain('1ms');
    while (refused.status === 200) refused = await drain('1ms');
    expect([refused.status, await refused.json()]).toMatchObject([
      503,
      { error: { code: 'too_many_waits' } },
    ]);
    expect(refused.headers.get('connection')).toBe('close');
    expect((await drain('0s')).status).toBe(200);
    await leave();
    for (const connection of held) expect(await connection.readResponse()).toMatchObject({ status: 200 });
    expect((await drain('1h')).status).toBe(200);
  });
});
