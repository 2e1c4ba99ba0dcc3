import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { startGateway } from '#testkit/start-gateway.ts';

const run = promisify(execFile);

test('the command of the operations guide brings the files of records into a collector', async () => {
  const guide = await readFile('docs/operations.md', 'utf8');
  const [command = ''] = /^cat records.*curl.*$/m.exec(guide) ?? [];
  await using collector = await startFakeCollector();
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({
    replicas: [replica],
    config: { export: { to: 'file', batch_size: 2, interval: '10ms' } },
  });
  for (let index = 0; index < 5; index += 1) await (await gateway.chat()).arrayBuffer();
  const records = await gateway.waitForRecords(5);
  await expect.poll(async () => (await gateway.stats()).exported).toBe(5);

  await run('sh', ['-c', command], {
    cwd: gateway.stateDir,
    env: { PATH: process.env.PATH, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
  });

  const ids = collector.spans.map(({ attributes }) => attributes['gateway.request_id']);
  expect(ids).toEqual(records.map(({ request_id }) => request_id));
  expect(collector.calls.length).toBeGreaterThan(2);
});
