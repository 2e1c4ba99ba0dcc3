import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, open, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { openSpool } from '#otel/disk';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { startFakeReplica } from '#testkit/fake-replica.ts';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { startGateway } from '#testkit/start-gateway.ts';
import { encodeId } from '../otel/encoded-spans.ts';

const makeFifo = async (path: string) => void execFileSync('mkfifo', [path]);

async function makeHuge(path: string): Promise<void> {
  await using file = await open(path, 'w');
  await file.truncate(300 * 1024 ** 2);
}

/** What may be in the place of one of our files. */
const ODD: readonly (readonly [what: string, make: (path: string) => Promise<unknown>])[] = [
  ['a FIFO', makeFifo],
  ['a link to /dev/zero', (path) => symlink('/dev/zero', path)],
  ['a directory', (path) => mkdir(path)],
  ['300 MB of nothing', makeHuge],
];

let stateDir: string;
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), 'spangate-'));
  return () => rm(stateDir, { recursive: true });
});

test('what is no regular file in the spool stays there, is logged once, and blocks nothing', async () => {
  const directory = join(stateDir, 'spool');
  const spool = await openSpool(directory, createQuietLog());
  expect(await spool.put([encodeId('0000000000000001')])).toBe(1);
  const odd = ODD.map(([what, make], index) => ({ what, make, name: `0000000000000${index}-x.spool` }));
  for (const { name, make } of odd) await make(join(directory, name));
  await symlink('nowhere', join(directory, '00000000000009-x.spool.new'));

  await using replica = await startFakeReplica();
  await using collector = await startFakeCollector();
  await using gateway = await startGateway({
    replicas: [replica],
    collector,
    stateDir,
    config: { shutdown: { flush: '0s' } },
  });
  expect((await gateway.chat()).status).toBe(200);
  await expect.poll(() => gateway.stats()).toMatchObject({ exported: 2, restored: 1, queued: 0 });
  for (const { name } of odd) {
    const lines = gateway.logLines.filter((line) => line.includes(name));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('spool file cannot be read: its records stay there');
  }
  await collector.close();
  expect((await gateway.chat()).status).toBe(200);
  expect(await gateway.close()).toEqual({ cutRequests: 0, undeliveredRecords: 0 });
  expect(await readdir(directory)).toEqual(expect.arrayContaining(odd.map(({ name }) => name)));
});

describe('the start ends with one line when the salt', () => {
  test.each(ODD)('is %s', async (_what, make) => {
    await make(join(stateDir, 'salt'));
    const start = startGateway({
      replicas: [{ name: 'a', url: 'http://127.0.0.1:9' }],
      stateDir,
      hashSalt: '',
    });
    await expect(start).rejects.toThrow(
      /^hash salt: \S*\/salt is (not a regular file|far too large to be ours)$/,
    );
  });
});

test.each(ODD)('%s in place of the drains is set aside, and the gateway starts', async (_what, make) => {
  await make(join(stateDir, 'drains.json'));
  await using gateway = await startGateway({
    replicas: [{ name: 'a', url: 'http://127.0.0.1:9' }],
    stateDir,
  });
  expect(await gateway.untilLogged('a state file is damaged')).toContain('drains.json.damaged-');
});

test.each(ODD.slice(0, 3))(
  'the start ends with one line when the file of records is %s',
  async (_what, make) => {
    await make(join(stateDir, 'records.jsonl'));
    const start = startGateway({ replicas: [{ name: 'a', url: 'http://127.0.0.1:9' }], stateDir });
    await expect(start).rejects.toThrow('telemetry: cannot write the file of the records');
  },
);

test.each(ODD.slice(0, 3))(
  'a drain that cannot be stored because of %s is in force, and its answer has a warning',
  async (_what, make) => {
    await make(join(stateDir, 'drains.json.tmp'));
    await using replica = await startFakeReplica({ name: 'a' });
    await using gateway = await startGateway({ replicas: [replica], stateDir });
    const drained = await gateway.admin('/admin/replicas/a/drain', { method: 'POST' });
    expect(await drained.json()).toMatchObject({ replica: { drained: true }, warning: expect.any(String) });
  },
);

test('paths named like closed files that are no regular files are neither counted nor touched', async () => {
  for (const [index, [, make]] of ODD.entries()) {
    await make(join(stateDir, `records-20200101T000000.00${index}Z-0001.jsonl`));
  }
  await using replica = await startFakeReplica();
  await using gateway = await startGateway({
    replicas: [replica],
    stateDir,
    config: { export: { interval: '10ms', file: { max_size: '8MiB', max_total: '16MiB' } } },
  });
  expect((await gateway.chat()).status).toBe(200);
  await expect.poll(async () => (await gateway.stats()).exported).toBe(1);
  const names = await readdir(stateDir);
  expect(names.filter((each) => each.startsWith('records-'))).toHaveLength(3);
});
