import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { readTrace } from '../records/trace/replay.ts';
import { invoke } from './invoke.ts';

const FIXTURES = join(import.meta.dirname, '../fixtures/export-trace');
const RECORDS = join(FIXTURES, 'records.jsonl');

let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'spangate-trace-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** A line of a file of records, as a Collector's file exporter writes it: only what is read. */
function lineOf(...records: readonly Partial<RequestRecord>[]): string {
  const toValue = (value: unknown): object => {
    if (typeof value === 'string') return { stringValue: value };
    if (typeof value === 'boolean') return { boolValue: value };
    if (Array.isArray(value)) return { arrayValue: { values: value.map(toValue) } };
    return { intValue: String(value) };
  };
  const spans = records.map((record) => ({
    attributes: Object.entries({ ...LEAST, ...record }).map(([field, value]) => ({
      key: `gateway.${field}`,
      value: field === 'e2e_ms' ? { doubleValue: value } : toValue(value),
    })),
  }));
  return `${JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans }] }] })}\n`;
}

const LEAST = {
  request_id: 'r',
  trace_id: '0'.repeat(32),
  ts: '2026-11-21T08:00:00.000Z',
  endpoint: '/v1/chat/completions',
  e2e_ms: 1,
  status: 200,
  stream: false,
  replica: 'a',
  model: 'm',
  prompt_tokens: 10,
  completion_tokens: 1,
};

async function fileOf(name: string, content: string): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, content);
  return path;
}

describe('gateway export-trace', () => {
  test('writes the trace of a file of records', async () => {
    const { exitCode, stdout, stderr } = await invoke(['export-trace', '--block-size', '128', RECORDS]);
    expect(stdout).toBe(await readFile(join(FIXTURES, 'trace.jsonl'), 'utf8'));
    expect(stderr).toBe('gateway: 2 records that generated no text or lack token counts, left out\n');
    expect(exitCode).toBe(0);
    expect(readTrace(stdout, 128)).toHaveLength(6);
  });

  test('summarizes what was cached and what could have been, for each replica', async () => {
    const { stdout } = await invoke(['export-trace', '--summary', RECORDS]);
    expect(stdout).toBe(await readFile(join(FIXTURES, 'summary.txt'), 'utf8'));
    const json = await invoke(['export-trace', '--summary', '--json', RECORDS]);
    expect(JSON.parse(json.stdout)).toEqual(
      JSON.parse(await readFile(join(FIXTURES, 'summary.json'), 'utf8')),
    );
  });

  test('writes both, the trace to a file and the summary for people', async () => {
    const output = join(folder, 'both.jsonl');
    const args = ['export-trace', '--summary', '--block-size', '128', '--output', output, RECORDS];
    const { stdout } = await invoke(args);
    expect(stdout).toBe(await readFile(join(FIXTURES, 'summary.txt'), 'utf8'));
    expect(await readFile(output, 'utf8')).toBe(await readFile(join(FIXTURES, 'trace.jsonl'), 'utf8'));
  });

  test('reads standard input, lines of many pieces, and files of several gateways together', async () => {
    const second = await fileOf(
      'second.jsonl',
      lineOf({ request_id: 'r2', ts: '2026-11-21T08:00:01.000Z', tenant: 'line\u2028separator' }),
    );
    const piped = Buffer.from(
      lineOf({ request_id: 'r3', ts: '2026-11-21T08:00:02.000Z' }) + lineOf({ request_id: 'r1' }),
    );
    const pieces = Array.from(piped, (_, index) => piped.subarray(index, index + 1));
    const { stdout, stderr } = await invoke(['export-trace', '-', second], {}, Readable.from(pieces));
    expect([stderr, readTrace(stdout, 512).map(({ atMs }) => atMs)]).toEqual(['', [0, 1000, 2000]]);
  });

  test('selects the requests of one model or of one replica', async () => {
    const path = await fileOf(
      'filtered.jsonl',
      lineOf(
        { request_id: '1', model: 'm' },
        { request_id: '2', model: 'n', replica: 'b', prompt_tokens: 20 },
      ),
    );
    for (const filter of [['--model', 'n'], ['--replica=b']]) {
      const { stdout } = await invoke(['export-trace', ...filter, path]);
      expect(readTrace(stdout, 512).map(({ tokens }) => tokens.length)).toEqual([20]);
    }
    const nobody = await invoke(['export-trace', '--model', 'nobody', path]);
    expect(nobody).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'gateway: no request with token counts found for this filter\n',
    });
  });

  test('counts and skips broken lines and repeated records', async () => {
    const path = await fileOf(
      'broken.jsonl',
      `no JSON\n${lineOf({ request_id: '1' })}\n{"resourceMetrics":[]}\n${lineOf({ request_id: '1' })}${lineOf({}).slice(0, -9)}`,
    );
    const { exitCode, stdout, stderr } = await invoke(['export-trace', path]);
    expect(readTrace(stdout, 512)).toHaveLength(1);
    expect(stderr).toBe('gateway: 3 broken lines, left out\ngateway: 1 repeated records, used once\n');
    expect(exitCode).toBe(0);
  });

  test('says so if there are no requests', async () => {
    const path = await fileOf('empty.jsonl', '');
    expect(await invoke(['export-trace', path])).toEqual({
      exitCode: 1,
      stdout: '',
      stderr: 'gateway: no request with token counts found\n',
    });
  });

  test.each([
    [['missing.jsonl'], 2, 'cannot read missing.jsonl: there is no such file or directory'],
    [[FIXTURES], 2, `cannot read ${FIXTURES}: it is a directory`],
    [['--output', `${RECORDS}/x`, RECORDS], 2, `cannot write ${RECORDS}/x: a part of its path is a file`],
    [['--output', RECORDS, RECORDS], 2, `cannot write ${RECORDS}: it is one of the files to read`],
    [[], 2, 'RECORDS.jsonl is missing'],
    [['-', '-'], 2, '- can be given only once'],
    [['--json', RECORDS], 2, '--json needs --summary'],
    [
      ['--block-size', '100', RECORDS],
      2,
      '--block-size must be at least 128, the number of tokens per prefix hash',
    ],
    [['--block-size', '0', RECORDS], 2, '--block-size must be a positive number'],
    [['--chars-per-token', '-1', RECORDS], 2, ''],
    [['--chars-per-token', '1e3', RECORDS], 2, '--chars-per-token must be a positive number'],
    [['--fast', RECORDS], 2, "unknown option '--fast'"],
  ])('refuses %j', async (args, exitCode, message) => {
    const outcome = await invoke(['export-trace', ...args]);
    expect([outcome.exitCode, outcome.stdout]).toEqual([exitCode, '']);
    expect(outcome.stderr).toContain(message === '' ? 'gateway: ' : `gateway: ${message}\n`);
  });

  test('prints its help', async () => {
    const { exitCode, stdout } = await invoke(['export-trace', '--help']);
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('--block-size N')]);
  });
});
