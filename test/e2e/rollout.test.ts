import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, test } from 'vitest';
import {
  rollDuringAdminOutages,
  rollLastReplica,
  rollService,
} from '../../lab/rollout/roll-in-hard-cases.ts';
import { rollReplicas } from '../../lab/rollout/roll-replicas.ts';
import { updateGateways } from '../../lab/rollout/update-gateways.ts';

const run = promisify(execFile);
const ALL = ['vllm-0', 'vllm-1', 'vllm-2', 'vllm-3'];

const UNNOTICED = { failures: [], reachedWhileDrained: 0, cut: 0 };

describe('under load, the documented script', () => {
  test('rolls replicas behind an SRV name, which a replica leaves while it restarts', async () => {
    const names = [11, 12, 13].map((last) => `vllm-127.0.0.${last}`);
    expect(await rollService()).toMatchObject({ ...UNNOTICED, exitCode: 0, restarted: names });
  });

  test('rolls replicas although the admin API is away when each of them is to be undrained', async () => {
    expect(await rollDuringAdminOutages()).toMatchObject({ ...UNNOTICED, exitCode: 0, restarted: ALL });
  });

  test('refuses to restart the last replica that works', async () => {
    expect(await rollLastReplica()).toMatchObject({ ...UNNOTICED, exitCode: 1, restarted: [] });
  });
});

describe('under 200 mixed requests a second,', () => {
  test.each([1, 2])(
    'the documented script rolls four replicas behind a gateway of %i workers, and nobody notices',
    async (workers) => {
      const { requests, records, ...report } = await rollReplicas(workers);
      expect(report).toMatchObject({ exitCode: 0, restarted: ALL, failures: [] });
      expect(report).toMatchObject({ reachedWhileDrained: 0, cut: 0, missing: 0, unknown: 0 });
      expect(records).toBe(requests);
    },
  );

  test('two gateways behind HAProxy are replaced one after the other, and nobody notices', async (context) => {
    const hasBalancer = await run('haproxy', ['-v'], { env: { PATH: `${process.env.PATH}:/usr/sbin` } }).then(
      () => true,
      () => false,
    );
    const reason = 'needs HAProxy (the package haproxy of Debian)';
    if (!hasBalancer && process.env.CI === 'true') throw new Error(reason);
    if (!hasBalancer) context.skip(reason);

    const { requests, records, ...report } = await updateGateways();
    expect(report).toMatchObject({ exitCodes: [0, 0], failures: [], missing: 0, unknown: 0 });
    expect(records).toBe(requests);
  });
});
