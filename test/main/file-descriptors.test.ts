import { expect, test } from 'vitest';
import { conditionsOf } from '#testkit/conditions.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { serve, TOKEN } from '#testkit/processes/main-process.ts';
import { RawConnection } from '#testkit/raw-http.ts';

const MAX_FILES = 128;
/** (128 − 64 − 128 / 8) / 2 */
const ACCEPTED = 24;
const BODY = '{"model":"m","messages":[]}';
const CHAT = `POST /v1/chat/completions HTTP/1.1\r\nHost: g\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`;

test('with few file descriptors a gateway serves as many clients as it can, says so once, and recovers', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  const gateway = await serve(replica, { maxFiles: MAX_FILES });
  const logged = gateway.untilLogged(
    'no file descriptors for more clients: new connections are closed; raise the limit of open files (ulimit -n, LimitNOFILE)',
  );
  {
    await using connections = new AsyncDisposableStack();
    const served: RawConnection[] = [];
    for (let count = 0; count < ACCEPTED; count++) {
      const connection = connections.use(await RawConnection.open(gateway.url));
      connection.write(CHAT);
      served.push(connection);
    }
    for (const connection of served) expect((await connection.readResponse()).status).toBe(200);
    for (let count = 0; count < 2 * MAX_FILES; count++) {
      using turnedAway = await RawConnection.open(gateway.url);
      await turnedAway.readToClose();
    }
    expect(await logged).toMatchObject({ level: 'info', connections: ACCEPTED });
    // Those that it has, it goes on to serve.
    for (const connection of served) connection.write(CHAT);
    for (const connection of served) expect((await connection.readResponse()).status).toBe(200);
  }
  await expect.poll(() => statusOf(gateway.url)).toBe(200);
});

async function statusOf(url: string): Promise<number | null> {
  using connection = await RawConnection.open(url);
  connection.write(CHAT);
  return await connection.readResponse().then(
    ({ status }) => status,
    () => null,
  );
}

test('open files near their limit are told until they are closed', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  const gateway = await serve(replica, { maxFiles: MAX_FILES, preload: OPENING });
  const admin = (path: string) =>
    fetch(gateway.adminUrl + path, { headers: { Authorization: `Bearer ${TOKEN}` } });
  const open = () => conditionsOf({ admin }, 'descriptors_near_limit');
  await expect
    .poll(open)
    .toMatchObject([{ sentence: expect.stringMatching(/^1[012]\d of 128 file descriptors are open$/) }]);
  gateway.child.kill('SIGUSR2');
  await expect.poll(open).toEqual([]);
});

/** Opens files, and closes them at a signal. */
const OPENING = `
import { closeSync, openSync } from 'node:fs';
const files = Array.from({ length: 80 }, () => openSync('/dev/null'));
process.on('SIGUSR2', () => files.forEach((file) => closeSync(file)));
`;
