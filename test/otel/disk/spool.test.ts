import { rmSync, writeFileSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { openSpool, type Spool } from '../../../otel/disk/spool.ts';
import { encodeName, nameOf } from '../encoded-spans.ts';

let parent: string;
let directory: string;
beforeEach(async () => {
  parent = await mkdtemp(join(tmpdir(), 'spangate-'));
  directory = join(parent, 'spool');
});
afterEach(() => rm(parent, { recursive: true, force: true }));

const open = (log = createQuietLog()) => openSpool(directory, log);
const spansOf = (count: number) => Array.from({ length: count }, (_, index) => encodeName(String(index)));
const namesOf = (spans: readonly Uint8Array[] = []) => spans.map(nameOf);
const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

/** The only file in the spool. */
async function onlyFile(): Promise<string> {
  const names = await readdir(directory);
  expect(names).toHaveLength(1);
  return join(directory, names[0] ?? '');
}

async function readAll(spool: Spool): Promise<readonly Uint8Array[][]> {
  const batches: Uint8Array[][] = [];
  for (let batch = await spool.next(); batch !== undefined; batch = await spool.next())
    batches.push([...batch.encodedSpans]);
  return batches;
}

test('stored records are read at the next start, in order, from files of at most 512', async () => {
  expect(await (await open()).put(spansOf(1100))).toBe(1100);
  const batches = await readAll(await open());
  expect(batches.map((batch) => batch.length)).toEqual([512, 512, 76]);
  expect(namesOf(batches.flat())).toEqual(Array.from({ length: 1100 }, (_, index) => String(index)));
});

test('a file holds at most 4 MiB, but at least one record', async () => {
  const sizes = [3, 2, 5, 1].map((mebibytes) => Buffer.alloc(mebibytes * 1024 * 1024, 'x'));
  await (await open()).put(sizes);
  const batches = await readAll(await open());
  expect(batches.map((batch) => batch.map(({ length }) => length / 1024 / 1024))).toEqual([
    [3],
    [2],
    [5],
    [1],
  ]);
});

test('only the owner can read the spool', async () => {
  await (await open()).put(spansOf(1));
  expect(await modeOf(directory)).toBe(0o700);
  expect(await modeOf(await onlyFile())).toBe(0o600);
});

test('a spool that was never needed has no directory', async () => {
  expect(await (await open()).next()).toBeUndefined();
  expect(await readdir(parent)).toEqual([]);
});

test('files that vanish while the room is counted cost no record', async () => {
  await mkdir(directory, { recursive: true });
  const others = Array.from({ length: 800 }, (_, index) => join(directory, `${index}`));
  for (const path of others) writeFileSync(path, '');
  const stored = (await open()).put(spansOf(1));
  // One in each turn, so that some are listed and gone when they are looked at.
  for (const path of others.toReversed()) {
    await setImmediate();
    rmSync(path);
  }
  expect(await stored).toBe(1);
});

test('a file is removed when all of its records are settled, and shortened when some are', async () => {
  await (await open()).put(spansOf(3));
  const batch = await (await open()).next();
  await batch?.settle(2);
  expect(namesOf((await (await open()).next())?.encodedSpans)).toEqual(['2']);
  await batch?.settle(1);
  expect(await readdir(directory)).toEqual([]);
});

describe('a file that is damaged', () => {
  test.each([
    {
      how: 'in the middle of a line',
      damage: (line: string) => line.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
    },
    { how: 'by a line that is no record', damage: () => 'x' },
    { how: 'by an empty line', damage: () => '' },
    { how: 'in a checksum', damage: (line: string) => `x${line.slice(1)}` },
    {
      how: 'by a character that base64 does not have',
      damage: (line: string) => `${line.slice(0, 12)}?${line.slice(13)}`,
    },
  ])('$how loses only that line, and logs it', async ({ damage }) => {
    await (await open()).put(spansOf(3));
    const path = await onlyFile();
    const [first, second = '', ...rest] = (await readFile(path, 'utf8')).split('\n');
    await writeFile(path, [first, damage(second), ...rest].join('\n'));
    const log = createQuietLog();
    const batch = await (await open(log)).next();
    expect(namesOf(batch?.encodedSpans)).toEqual(['0', '2']);
    expect(batch?.damagedCount).toBe(1);
    expect(log.lines).toContainEqual({
      level: 'error',
      fields: { unreadable: 1, readable: 2 },
      message: expect.any(String),
    });
  });

  test('at its end, by an incomplete write, loses only the incomplete line', async () => {
    await (await open()).put(spansOf(3));
    const path = await onlyFile();
    await truncate(path, (await stat(path)).size - 3);
    expect(namesOf((await (await open()).next())?.encodedSpans)).toEqual(['0', '1']);
  });

  test('before it was renamed still holds its whole lines', async () => {
    await (await open()).put(spansOf(3));
    const path = await onlyFile();
    await truncate(path, (await stat(path)).size - 3);
    await rename(path, `${path}.new`);
    const batch = await (await open()).next();
    expect(namesOf(batch?.encodedSpans)).toEqual(['0', '1']);
    await batch?.settle(2);
    expect(await readdir(directory)).toEqual([]);
  });

  test('completely is counted line by line', async () => {
    await (await open()).put(spansOf(1));
    await writeFile(await onlyFile(), Buffer.alloc(1000, 'garbage\n'));
    expect(await (await open()).next()).toMatchObject({ encodedSpans: [], damagedCount: 125 });
  });

  test('so that it is empty is removed', async () => {
    await (await open()).put(spansOf(1));
    await truncate(await onlyFile(), 0);
    expect(await (await open()).next()).toBeUndefined();
    expect(await readdir(directory)).toEqual([]);
  });
});

test('half a rewritten file is ignored: the original is still there', async () => {
  await (await open()).put(spansOf(2));
  const path = await onlyFile();
  await writeFile(`${path}.rest`, (await readFile(path)).subarray(0, 12));
  expect((await readAll(await open())).map(namesOf)).toEqual([['0', '1']]);
  expect(await onlyFile()).toBe(path);
});

test('other files in the directory stay', async () => {
  await (await open()).put(spansOf(1));
  await writeFile(join(directory, 'README'), 'hello');
  expect((await readAll(await open())).map(namesOf)).toEqual([['0']]);
  expect(await readdir(directory)).toContain('README');
});

describe('a spool that cannot be used', () => {
  test('because it is full, stores what there is room for and logs what is lost', async () => {
    await (await openSpool(directory, createQuietLog(), 1500)).put([Buffer.alloc(1000, 'x')]);
    const log = createQuietLog();
    const spool = await openSpool(directory, log, 11_000);
    const spans = Array.from({ length: 600 }, () => Buffer.alloc(5, 'y'));
    expect(await spool.put(spans)).toBe(512);
    expect(log.lines.at(-1)).toMatchObject({
      level: 'error',
      fields: { reason: 'spool_full', undelivered: 88 },
    });
  });

  test('because a file is in its place, stores nothing and logs it', async () => {
    await writeFile(directory, '');
    const log = createQuietLog();
    const spool = await open(log);
    expect(await spool.next()).toBeUndefined();
    expect(await spool.put(spansOf(2))).toBe(0);
    expect(log.lines).toMatchObject([
      { level: 'error', fields: { reason: 'ENOTDIR' } },
      { level: 'error', fields: { undelivered: 2 } },
    ]);
  });

  test('because one of its files cannot be read, logs it and continues with the next', async () => {
    await (await open()).put(spansOf(1));
    const first = await onlyFile();
    await (await open()).put(spansOf(2));
    await rm(first);
    await mkdir(first);
    const log = createQuietLog();
    expect((await readAll(await open(log))).map(namesOf)).toEqual([['0', '1']]);
    expect(log.lines).toContainEqual({
      level: 'error',
      fields: { file: expect.stringMatching(/\.spool$/), reason: 'not_a_file' },
      message: expect.any(String),
    });
  });
});
