import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Finding } from '#conditions';
import { linesOf, untilCondition, untilOver } from '#testkit/conditions.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { createLogProducer } from '../../../src/gateway/conditions/file-conditions.ts';

test('lost lines of the log are told for a quarter of an hour after the last one', () => {
  const now = { ms: 0, lost: 0 };
  const produce = createLogProducer(
    () => ({ lost: now.lost, reason: 'ENOSPC' }),
    () => now.ms,
  );
  const look = (ms: number, lost: number) => {
    Object.assign(now, { ms, lost });
    return [...(produce() as Iterable<Finding>)].map(({ figures }) => figures);
  };
  expect(look(0, 0)).toEqual([]);
  expect(look(1_000, 5)).toEqual([{ lost: 5, reason: 'ENOSPC' }]);
  expect(look(600_000, 6)).toEqual([{ lost: 6, reason: 'ENOSPC' }]);
  expect(look(1_499_999, 6)).toHaveLength(1);
  expect(look(1_500_000, 6)).toEqual([]);
});

test('a drain that cannot be stored is told with the path and the reason, until it is stored', async () => {
  await using replica = await startFakeReplica({ name: 'a' });
  await using gateway = await startGateway({ replicas: [replica] });
  const path = join(gateway.stateDir, 'drains.json');
  await mkdir(join(path, 'in the way'), { recursive: true });
  const drained = await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
  expect(await drained.json()).toMatchObject({ stored: false });
  const { subject, sentence, severity } = await untilCondition(gateway, 'state_not_stored');
  expect([subject, severity]).toEqual([path, 'critical']);
  expect(sentence).toMatch(/drains\.json cannot be written: it is a directory \(EISDIR\)$/);
  await rm(path, { recursive: true });
  await untilOver(gateway, 'state_not_stored');
  expect(linesOf(gateway, 'state_not_stored')).toHaveLength(2);
});
