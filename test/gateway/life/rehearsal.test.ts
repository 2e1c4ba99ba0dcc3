import { hash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const KEY = 'a-key-of-a-team';

describe.each([1, 2])('a gateway of %i workers that rehearses', (workers) => {
  test('serves as if it had not: nothing of it is counted, recorded, logged or sent to a replica', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      rehearses: true,
      config: {
        gateway: { workers },
        clients: [{ name: 'team', key_sha256: hash('sha256', KEY) }],
        tenant_limits: { default: { requests_per_minute: 1 } },
        trace: { spans: 'attempts' },
        retry: { statuses: [503] },
      },
    });
    expect((await gateway.chat({}, { headers: { Authorization: `Bearer ${KEY}` } })).status).toBe(200);
    const record = await gateway.nextRecord();
    expect(record).toMatchObject({ seq: 1, replica: 'a', attempts: 1 });
    expect(gateway.records).toHaveLength(1);
    expect(replica.requests).toHaveLength(1);
    expect((await gateway.replicas()).map(({ name, inflight }) => [name, inflight])).toEqual([['a', 0]]);
    const metrics = await (await gateway.admin('/metrics')).text();
    // On a busy machine it may take longer than it is given.
    const others = gateway.logLines.filter((line) => !line.includes('rehearsal ended early'));
    expect([...others, metrics].filter((text) => text.includes('rehears'))).toEqual([]);
    expect(await gateway.close()).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
  });

  test('serves also when a limit refuses what is rehearsed', async () => {
    await using replica = await startFakeReplica();
    await using gateway = await startGateway({
      replicas: [replica],
      rehearses: true,
      config: { gateway: { workers }, limits: { body: '1KiB' }, log: { level: 'debug' } },
    });
    expect((await gateway.chat()).status).toBe(200);
    expect(await gateway.untilLogged('rehearsal ended early')).toContain('413');
  });
});
