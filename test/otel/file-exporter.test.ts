import { appendFile, chmod, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createEnvelope } from '#otel/envelope.ts';
import { openFileSink } from '#otel/file-exporter.ts';
import { TelemetryError } from '#otel/telemetry-error.ts';

const ENVELOPE = createEnvelope(resourceFromAttributes({ 'service.name': 'spangate' }));
const NEVER = new AbortController().signal;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spangate-'));
});
afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

const path = () => join(directory, 'records.jsonl');
const lines = (...names: string[]) => names.map((name) => Buffer.from(JSON.stringify({ name })));

/** The span names of every line that is whole. */
async function readNames(): Promise<string[][]> {
  const text = await readFile(path(), 'utf8');
  return text
    .split('\n')
    .filter((line) => line.endsWith('}'))
    .map((line) => {
      const spans: { name: string }[] = JSON.parse(line).resourceSpans[0].scopeSpans[0].spans;
      return spans.map(({ name }) => name);
    });
}

test('each batch is one line of OTLP JSON, in a file that only its owner reads', async () => {
  const sink = await openFileSink(directory, ENVELOPE);
  expect(await sink.exportBatch(lines('a', 'b'), NEVER)).toEqual({ kind: 'taken', rejectedCount: 0 });
  await sink.exportBatch(lines('c'), NEVER);
  expect(await readNames()).toEqual([['a', 'b'], ['c']]);
  expect((await stat(path())).mode & 0o777).toBe(0o600);
});

test('a restart appends', async () => {
  await (await openFileSink(directory, ENVELOPE)).exportBatch(lines('a'), NEVER);
  await (await openFileSink(directory, ENVELOPE)).exportBatch(lines('b'), NEVER);
  expect(await readNames()).toEqual([['a'], ['b']]);
});

test('half a line that a killed process left spoils no other', async () => {
  await writeFile(path(), '{"resourceSpans":[');
  await (await openFileSink(directory, ENVELOPE)).exportBatch(lines('a'), NEVER);
  expect(await readNames()).toEqual([['a']]);
});

test('a file that is moved away is begun anew', async () => {
  const sink = await openFileSink(directory, ENVELOPE);
  await sink.exportBatch(lines('a'), NEVER);
  await rename(path(), `${path()}.1`);
  await sink.exportBatch(lines('b'), NEVER);
  expect(await readNames()).toEqual([['b']]);
});

test('a write that fails is no answer, and a later one is on a line of its own', async () => {
  const sink = await openFileSink(directory, ENVELOPE);
  await rm(path());
  await mkdir(path());
  expect(await sink.exportBatch(lines('a'), NEVER)).toEqual({ kind: 'unanswered', code: 'EISDIR' });
  await rm(path(), { recursive: true });
  await appendFile(path(), '{"half');
  await sink.exportBatch(lines('a'), NEVER);
  expect(await readNames()).toEqual([['a']]);
});

test('a directory that is missing is made, for its owner alone', async () => {
  const deeper = join(directory, 'state');
  await openFileSink(deeper, ENVELOPE);
  expect((await stat(deeper)).mode & 0o777).toBe(0o700);
});

test('a directory that is a file is an error at the start', async () => {
  await writeFile(join(directory, 'state'), '');
  await chmod(join(directory, 'state'), 0o600);
  await expect(openFileSink(join(directory, 'state'), ENVELOPE)).rejects.toThrow(TelemetryError);
});
