import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { updateGateways } from '../../../rollout/update-gateways.ts';

const run = promisify(execFile);

test('under 200 mixed requests a second, two gateways behind HAProxy are replaced one after the other, and nobody notices', async (context) => {
  const hasBalancer = await run('haproxy', ['-v'], { env: { PATH: `${process.env.PATH}:/usr/sbin` } }).then(
    () => true,
    () => false,
  );
  const reason = 'needs HAProxy (the package haproxy of Debian)';
  if (!hasBalancer && process.env.CI === 'true') throw new Error(reason);
  if (!hasBalancer) context.skip(reason);

  const { requests, records, ...report } = await updateGateways({ requestsAfter: 50 });
  expect(report).toMatchObject({ exitCodes: [0, 0], failures: [], missing: 0, unknown: 0 });
  expect(records).toBe(requests);
});
