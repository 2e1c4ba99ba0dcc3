import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openSpool } from '#otel/disk';
import { type FakeCollector, startFakeCollector } from '#testkit/fake-collector.ts';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { quickStart } from '#testkit/processes/quick-start.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { encodeId } from '../otel/encoded-spans.ts';

const REPLICA = { name: 'a', url: 'http://127.0.0.1:9' };
const FILE_RECORDS = 512;

let stateDir: string;
let collector: FakeCollector;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'spangate-'));
  collector = await startFakeCollector();
});
afterEach(async () => {
  await collector.close();
  await rm(stateDir, { recursive: true });
});

/** Leaves records in the spool, as a shutdown does. */
async function fillSpool(count: number): Promise<void> {
  const spool = await openSpool(join(stateDir, 'spool'), createQuietLog());
  const spans = Array.from({ length: count }, (_, index) => encodeId(index.toString(16).padStart(16, '0')));
  expect(await spool.put(spans)).toBe(count);
}

/** A gateway in its own process. */
async function spawnGateway() {
  const config = join(stateDir, 'gateway.yaml');
  const settings = {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    state_dir: stateDir,
    replicas: [{ ...REPLICA, models: ['m'], engine: 'openai' }],
    export: { endpoint: collector.url },
  };
  await writeFile(config, JSON.stringify(settings));
  return spawn(process.execPath, ['src/main.ts', '-config', config], { stdio: 'ignore', env: quickStart() });
}

test('a kill while restored records are sent repeats at most one batch, and loses nothing', async () => {
  await fillSpool(3 * FILE_RECORDS);
  collector.answerNext({});
  collector.answerAlways(() => undefined);
  const killed = await spawnGateway();
  await collector.waitFor(({ calls }) => calls.length === 2);
  killed.kill('SIGKILL');
  await once(killed, 'close');

  collector.answerAlways({});
  await using gateway = await startGateway({ replicas: [REPLICA], collector, stateDir });
  await expect.poll(async () => (await gateway.stats()).queued).toBe(0);
  await expect.poll(() => readdir(join(stateDir, 'spool'))).toEqual([]);
  const received = collector.calls.flatMap(({ spans }) => spans.map(({ spanId }) => spanId));
  expect(new Set(received).size).toBe(3 * FILE_RECORDS);
  expect(received.length).toBeLessThanOrEqual(4 * FILE_RECORDS);
  expect(await gateway.stats()).toMatchObject({
    recorded: 0,
    restored: 2 * FILE_RECORDS,
    exported: 2 * FILE_RECORDS,
  });
});
