import { expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { RawConnection } from '#testkit/raw-http.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const HEALTH = 'GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n';
const INFO = 30;

test('reaching limits.connections is told once, however many are turned away', async () => {
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({
    replicas: [replica],
    config: { limits: { connections: 3 } },
  });
  using opened = new DisposableStack();
  for (let count = 0; count < 3; count++) {
    const connection = opened.use(await RawConnection.open(gateway.url));
    connection.write(HEALTH);
    expect((await connection.readResponse()).status).toBe(200);
  }
  const told = () => gateway.logLines.filter((line) => line.includes('limits.connections'));
  expect(told()).toEqual([]);

  for (let count = 0; count < 10; count++) {
    using connection = await RawConnection.open(gateway.url);
    await connection.readToClose();
  }

  await gateway.untilLogged('limits.connections');
  expect(told()).toHaveLength(1);
  expect(JSON.parse(told()[0] ?? '{}')).toMatchObject({ level: INFO });
});
