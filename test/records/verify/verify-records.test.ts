import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import type { RecordSource } from '#records/files';
import { generateInstance, toLine } from '#testkit/records/generated-records.ts';
import { verifyRecords } from '../../../src/records/verify/verify-records.ts';
import { ledgerOf, recordOf } from './made-ledger.ts';

const MIB = 1024 * 1024;

async function* toChunks(chunks: readonly (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const chunk of chunks) yield Buffer.from(chunk);
}

const toSource = (name: string, ...chunks: readonly (string | Uint8Array)[]): RecordSource => ({
  name,
  chunks: toChunks(chunks),
});

/** A file whose reader fails. */
const toFailing = (error: unknown): RecordSource => ({
  name: 'a.jsonl',
  chunks: { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(error) }) },
});

const queued = (count: number) =>
  generateInstance(
    'a',
    Array.from({ length: count }, () => 'queued' as const),
  );

const few = queued(3);
const records = few.records.map(({ json }) => json);
/** Three, over 2,500 records. */
const { ledgers } = queued(2500);
const [first = '', , third = ''] = ledgers;
const COUNT = { instance: 'a', count: 2500, prompt_tokens: (2500 * 2501) / 2 };

const verifySums = (spans: readonly string[], sums: object, isPart = false) =>
  verifyRecords([toSource('a.jsonl', toLine(spans))], {
    isPart,
    sums: toSource('sums.json', JSON.stringify(sums)),
  });

describe('records in several files', () => {
  test('are verified together, and say nothing of sums', async () => {
    const files = [records, few.ledgers].map((spans, index) => toSource(`${index}.jsonl`, toLine(spans)));
    const report = await verifyRecords(files, { isPart: false, sums: null });
    expect(report).toMatchObject({ proven: true, broken_lines: 0, instances: [{ records: 3 }] });
    expect([report.sums, report.unidentified]).toEqual([undefined, undefined]);
  });

  test('prove nothing if there are none', async () => {
    expect(await verifyRecords([], { isPart: true, sums: null })).toMatchObject({ proven: false });
  });
});

describe('sums of a backend', () => {
  test('are proven by the ledger spans alone, whose records are then not missing', async () => {
    const report = await verifySums(ledgers, [COUNT]);
    expect(report).toMatchObject({ proven: true, sums: { differences: [] } });
    expect(report.instances[0]).not.toHaveProperty('missing');
  });

  test('that differ prove nothing', async () => {
    const report = await verifySums(ledgers, [{ ...COUNT, count: 2501 }]);
    expect(report).toMatchObject({
      proven: false,
      sums: { differences: [{ what: 'count', expected: 2500, found: 2501 }] },
    });
  });

  test('prove nothing of records that are missing in the files', async () => {
    const report = await verifySums([...records.slice(1), ...few.ledgers], [{ instance: 'a', count: 3 }]);
    expect(report).toMatchObject({ proven: false, sums: { differences: [] } });
    expect(report.instances[0]?.missing).toEqual({ count: 1, ranges: ['1'] });
  });

  test('of an instance that has not ended are proven only for a part', async () => {
    const sums = [{ instance: 'a', count: 1024 }];
    expect((await verifySums([first], sums)).proven).toBe(false);
    expect((await verifySums([first], sums, true)).proven).toBe(true);
  });

  test('prove nothing with ledger spans of which one is missing, changed or of another history', async () => {
    const upTo1024 = [{ instance: 'a', count: 1024, last_seq: 1024 }];
    const forged = ledgers.with(1, ledgers[1]?.replace('prompt_tokens","value":{"intValue":"', '$&9') ?? '');
    const other = generateInstance(
      'a',
      Array.from({ length: 2500 }, (_, index) => (index === 0 ? 'dropped' : 'queued')),
    );
    for (const spans of [
      [first, third],
      [...ledgers, forged[1] ?? ''],
      ledgers.with(1, other.ledgers[1] ?? ''),
    ]) {
      expect(spans).not.toEqual(ledgers);
      expect(await verifySums(spans, upTo1024)).toMatchObject({ proven: false, sums: { differences: [] } });
    }
  });

  test('are at most 64 MiB', async () => {
    const blanks = Buffer.alloc(32 * MIB, ' ');
    const verify = (...chunks: readonly Uint8Array[]) =>
      verifyRecords([], { isPart: false, sums: toSource('sums.json', ...chunks) });
    expect((await verify(blanks, blanks)).sums).toEqual({ differences: [] });
    await expect(verify(blanks, blanks, Buffer.from(' '))).rejects.toMatchObject({
      name: 'UnreadableError',
      message: 'sums.json is too large to be sums',
    });
  });

  test('that are none are named', async () => {
    await expect(verifySums(ledgers, { count: 1 })).rejects.toMatchObject({
      name: 'UnreadableError',
      message: 'cannot use sums.json: row 1 lacks instance or count, or has a value that is no number',
    });
  });
});

describe('a file that cannot be read', () => {
  const compressed = gzipSync('{}\n');

  test.each([
    ['that is cut', compressed.subarray(0, 12), 'cannot read a.jsonl: Z_BUF_ERROR'],
    [
      'with bytes behind its compressed data',
      Buffer.concat([compressed, Buffer.alloc(1)]),
      'cannot read a.jsonl: it goes on behind its compressed data',
    ],
  ])('is named: one %s', async (_, bytes, message) => {
    const verifying = verifyRecords([toSource('a.jsonl', bytes)], { isPart: false, sums: null });
    await expect(verifying).rejects.toMatchObject({ name: 'UnreadableError', message });
  });

  test('fails with the error of the system that has a code, and with any other one as it is', async () => {
    const verify = (error: unknown) =>
      verifyRecords([toFailing(error)], { isPart: false, sums: null }).catch((reason: unknown) => reason);
    const [failed, named] = [new Error('failed'), Object.assign(new Error('gone'), { code: 'EIO' })];
    expect(await verify(named)).toMatchObject({ message: 'cannot read a.jsonl: EIO', cause: named });
    for (const error of [failed, Object.assign(failed, { code: 5 }), { code: 'EIO' }]) {
      expect(await verify(error)).toBe(error);
    }
  });
});

describe('more than one run can verify is said to be so:', () => {
  const verify = (...lines: readonly string[]) =>
    verifyRecords([toSource('a.jsonl', ...lines)], { isPart: true, sums: null });

  test('more than 100,000 instances', async () => {
    const rejected = Array.from({ length: 100_000 }, (_, index) => `b${index}:1`);
    const lines = ledgerOf('a', [{ firstSeq: 1, lastSeq: 0, rejected }]);
    await expect(verify(toLine(lines))).rejects.toMatchObject({
      name: 'UnreadableError',
      message: 'more than 100,000 instances: verify fewer files at a time',
    });
  });

  test('more than 67 million records, or numbers as far apart', async () => {
    const lines = Array.from({ length: 65 }, (_, line) =>
      toLine(Array.from({ length: 1024 }, (_each, nth) => recordOf('a', 1024 * (1024 * line + nth) + 1))),
    );
    await expect(verify(...lines)).rejects.toMatchObject({
      name: 'UnreadableError',
      message: expect.stringMatching(/^more than 67 million records, or numbers that no gateway has given/),
    });
  });
});
