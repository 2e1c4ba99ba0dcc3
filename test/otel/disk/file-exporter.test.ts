import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { TelemetryError } from '#otel/base';
import type { RecordExporter } from '#otel/export';
import { encodeResourceSpans } from '#otel/otlp';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { VirtualClock } from '#testkit/otel/virtual-clock.ts';
import { openFileExporter } from '../../../otel/disk/file-exporter.ts';
import { encodeName } from '../encoded-spans.ts';

const RESOURCE_SPANS = encodeResourceSpans(resourceFromAttributes({ 'service.name': 'spangate' }));
const NEVER = new AbortController().signal;
const MEBIBYTE = 1024 * 1024;
const CLOSED = /^records-\d{8}T\d{6}\.\d{3}Z-\d{4}\.jsonl$/;

let directory: string;
let clock: VirtualClock;
const exporters: RecordExporter[] = [];
beforeEach(async () => {
  clock = new VirtualClock();
  directory = await mkdtemp(join(tmpdir(), 'spangate-'));
});
afterEach(async () => {
  for (const exporter of exporters.splice(0)) exporter.close();
  await rm(directory, { recursive: true, force: true });
});

async function open({
  maxBytes = MEBIBYTE,
  maxAgeMs = 60_000,
  maxTotalBytes = 10 * MEBIBYTE,
  inside = '.',
} = {}) {
  const log = createQuietLog();
  const settings = { directory: join(directory, inside), maxBytes, maxAgeMs, maxTotalBytes };
  const exporter = await openFileExporter(settings, RESOURCE_SPANS, { log, clock });
  exporters.push(exporter);
  return { log, write: (...names: string[]) => exporter.exportBatch(spans(...names), NEVER) };
}

const path = (name = 'records.jsonl') => join(directory, name);
const spans = (...names: string[]) => names.map(encodeName);
const closedFiles = async () => (await readdir(directory)).filter((name) => CLOSED.test(name)).sort();

/** The span names of each line; every line must be whole. */
async function readNames(name?: string): Promise<string[][]> {
  const text = await readFile(path(name), 'utf8');
  expect(text.endsWith('\n')).toBe(true);
  return text
    .trimEnd()
    .split('\n')
    .map((line) => {
      const found: { name: string }[] = JSON.parse(line).resourceSpans[0].scopeSpans[0].spans;
      return found.map((span) => span.name);
    });
}

test('each batch is one line of OTLP JSON, in a file that only its owner reads', async () => {
  const { write } = await open();
  expect(await write('a', 'b')).toEqual({ kind: 'taken', rejectedCount: 0 });
  await write('c');
  expect(await readNames()).toEqual([['a', 'b'], ['c']]);
  expect((await stat(path())).mode & 0o777).toBe(0o600);
});

test('a batch that is too long for one line of a Collector becomes several lines', async () => {
  const { write } = await open({ maxBytes: 10 * MEBIBYTE });
  const long = (letter: string) => letter.repeat(400_000);
  await write(long('a'), long('b'), long('c'), 'd', 'e'.repeat(2_000_000), 'f');
  const lines = await readNames();
  expect(lines.map((names) => names.map(([first]) => first).join(''))).toEqual(['ab', 'cd', 'e', 'f']);
});

test('a restart appends', async () => {
  await (await open()).write('a');
  await (await open()).write('b');
  expect(await readNames()).toEqual([['a'], ['b']]);
});

test('half a line that a killed process left is removed and logged', async () => {
  await (await open()).write('a');
  await writeFile(path(), `{"resourceSpans":[${' '.repeat(200_000)}`, { flag: 'a' });
  const { write, log } = await open();
  await write('b');
  expect(await readNames()).toEqual([['a'], ['b']]);
  expect(log.lines).toMatchObject([{ level: 'warn', fields: { bytes: 200_018 } }]);
});

test('a file that is moved away is created again', async () => {
  const { write } = await open();
  await write('a');
  await rename(path(), path('mine.jsonl'));
  await write('b');
  expect(await readNames()).toEqual([['b']]);
});

test('a missing directory is created, for its owner alone', async () => {
  await open({ inside: 'state' });
  expect((await stat(join(directory, 'state'))).mode & 0o777).toBe(0o700);
});

test('a directory that is a file is an error at the start', async () => {
  await writeFile(path('state'), '');
  await expect(open({ inside: 'state' })).rejects.toThrow(TelemetryError);
});

describe('a file is closed and renamed', () => {
  test('before a batch would make it too large', async () => {
    const { write } = await open({ maxBytes: 2000 });
    for (const name of ['a', 'b', 'c']) await write(name.repeat(300));
    const [first = '', second] = await closedFiles();
    expect(second).toBeUndefined();
    expect((await stat(path(first))).size).toBeLessThanOrEqual(2000);
    expect((await readNames(first)).flat().map(([letter]) => letter)).toEqual(['a', 'b']);
    expect((await readNames()).flat().map(([letter]) => letter)).toEqual(['c']);
  });

  test('with a name that sorts behind those before it, even when the clock was set back meanwhile, or before a start', async () => {
    const letters = async () =>
      (await Promise.all((await closedFiles()).map((name) => readNames(name)))).map(
        (lines) => lines[0]?.[0]?.[0],
      );
    const settings = { maxBytes: 500, maxTotalBytes: 2_500 };
    vi.useFakeTimers({ toFake: ['Date'] });
    try {
      for (const names of ['abc', 'def']) {
        const { write } = await open(settings);
        for (const name of names) await write(name.repeat(300));
        vi.setSystemTime(Date.now() - 3_600_000);
        await write('-'.repeat(300));
      }
      // The oldest have been deleted, not those that were closed last.
      expect((await letters()).slice(-2)).toEqual(['e', 'f']);
      expect(await letters()).toEqual((await letters()).toSorted());
    } finally {
      vi.useRealTimers();
    }
  });

  test('but a batch larger than that is still written', async () => {
    const { write } = await open({ maxBytes: 100 });
    for (const name of ['a', 'b', 'c']) await write(name.repeat(300));
    expect(await closedFiles()).toHaveLength(2);
  });

  test('when its first record is old enough, with or without traffic', async () => {
    const { write } = await open({ maxAgeMs: 1000 });
    await clock.advance(700);
    await write('a');
    await clock.advance(700);
    await write('b');
    await clock.advance(299);
    expect(await closedFiles()).toEqual([]);
    await clock.advance(1);
    await expect.poll(closedFiles).toHaveLength(1);
    expect(await readNames((await closedFiles())[0])).toEqual([['a'], ['b']]);
    await write('c');
    await clock.advance(1000);
    await expect.poll(closedFiles).toHaveLength(2);
  });

  test('when it is old enough, even after a restart', async () => {
    await (await open({ maxAgeMs: 60_000 })).write('a');
    await open({ maxAgeMs: 60_000 });
    await clock.advance(60_000);
    await expect.poll(closedFiles).toHaveLength(1);
  });

  test('and never holds half a line, even if a write failed before', async () => {
    const { write } = await open({ maxAgeMs: 1000 });
    await write('a');
    await rename(path(), path('moved'));
    await mkdir(path());
    expect(await write('lost')).toEqual({ kind: 'unanswered', code: 'EISDIR' });
    await rm(path(), { recursive: true });
    await rename(path('moved'), path());
    await writeFile(path(), '{"half', { flag: 'a' });
    // The next file descriptor finds the half line, as after a failed write that could not be undone.
    await open();
    await write('b');
    await clock.advance(60_000);
    await expect.poll(closedFiles).toHaveLength(1);
    expect(await readNames((await closedFiles())[0])).toEqual([['a'], ['b']]);
  });
});

describe('the oldest closed files are deleted', () => {
  test('so that all files together stay within the bound', async () => {
    const { write, log } = await open({ maxBytes: 1000, maxTotalBytes: 3500 });
    for (const name of 'abcdefgh') await write(name.repeat(600));
    const names = await closedFiles();
    const kept = await Promise.all(names.map((name) => readNames(name)));
    expect(kept.flat(2).map(([letter]) => letter)).toEqual(['e', 'f', 'g'].slice(-names.length));
    const sizes = await Promise.all(
      (await readdir(directory)).map(async (name) => (await stat(path(name))).size),
    );
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(3500);
    expect(log.lines[0]).toMatchObject({ level: 'info', fields: { bytes: expect.any(Number) } });
  });

  test('also at the start, after the bound was lowered; other files stay', async () => {
    const { write } = await open({ maxBytes: 1000 });
    for (const name of 'abcd') await write(name.repeat(600));
    await writeFile(path('records-of-mine.jsonl'), 'x'.repeat(5000));
    await open({ maxBytes: 1000, maxTotalBytes: 2500 });
    expect(await closedFiles()).toHaveLength(1);
    expect(await readdir(directory)).toContain('records-of-mine.jsonl');
  });
});

describe('a file that cannot be written', () => {
  test.each([
    ['it is a directory', 'EISDIR', () => mkdir(path())],
    ['it is a device, which would discard the records', 'not_a_file', () => symlink('/dev/full', path())],
  ])('gives no answer, like a collector that is away: %s', async (_why, code, spoil) => {
    const { write } = await open();
    await rm(path());
    await spoil();
    expect(await write('a')).toEqual({ kind: 'unanswered', code });
    await rm(path(), { recursive: true });
    expect(await write('a')).toEqual({ kind: 'taken', rejectedCount: 0 });
    expect(await readNames()).toEqual([['a']]);
  });
});
