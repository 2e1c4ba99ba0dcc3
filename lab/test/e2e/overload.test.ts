import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { sendAdminWaits } from '../../overload/admin-waits.ts';
import { sendLargeBodies } from '../../overload/large-bodies.ts';

const MIB = 1024 * 1024;
const COUNT = 20;
const createFolder = () => mkdtempDisposable(join(tmpdir(), 'spangate-overload-'));

test.for([
  ['that read at once', 0],
  ['that read nothing for a second', 1_000],
] as const)(
  'of 20 bodies of 32 MiB at once, twice, to replicas %s, each is served or refused as said, in bounded memory',
  {
    timeout: 600_000,
  },
  async ([, pauseMs]) => {
    await using folder = await createFolder();
    const result = await sendLargeBodies(
      { name: '', count: COUNT, bodyBytes: 32 * MIB, pauseMs, recoveryMs: 0 },
      folder.path,
    );
    const { served, refused, failures, meanwhile, afterwards, memory } = result;
    expect(failures).toEqual([]);
    expect(served + refused).toBe(2 * COUNT);
    expect(served).toBeGreaterThan(0);
    expect(meanwhile.filter((outcome) => outcome !== '200')).toEqual([]);
    expect(afterwards).toBe('200');
    // `limits.buffered`, and as much again for what is on its way.
    expect(memory.secondPeak - memory.before).toBeLessThan(2 * 512 * MIB);
  },
);

test('1,500 calls that wait for a drain lock nobody out of the admin API', { timeout: 300_000 }, async () => {
  await using folder = await createFolder();
  const { waited, failures, others, failedChats } = await sendAdminWaits(1_500, folder.path);
  expect(failures).toEqual([]);
  expect(waited).toBe(500);
  expect(others.answered).toBe(others.all);
  expect(failedChats).toBe(0);
});
