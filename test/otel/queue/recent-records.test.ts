import { describe, expect, test } from 'vitest';
import { LEAST_RECORD } from '#testkit/records/records.ts';
import { RecentRecords } from '../../../otel/queue/recent-records.ts';
import type { EndedRecord } from '../../../otel/queue/record-consumer.ts';
import { encodeName, encodeRecord } from '../encoded-spans.ts';

/** The record of a request that ended with this status, with a name that makes its encoded span this much longer. */
function ended(status: number, nameLength = 0): EndedRecord {
  const record = { ...LEAST_RECORD, status };
  return { record, encodedSpan: encodeRecord(record, { name: 'x'.repeat(nameLength) }) };
}

const LATEST = { capacity: 3, capacityBytes: 1024 * 1024 };
const BOUNDS = { latest: LATEST, failures: { ...LATEST, capacity: 2 } };

const fill = (records: RecentRecords, ...statuses: readonly number[]) => {
  for (const status of statuses) records.add(ended(status));
};

const statusesOf = (limit: number, after = 0) => ({
  in: (records: RecentRecords) => records.latest({ limit, after }).map(({ status }) => status),
});

describe('recent records', () => {
  test('come newest first, at most the given number', () => {
    const records = new RecentRecords(BOUNDS);
    fill(records, 200, 404);
    expect(statusesOf(10).in(records)).toEqual([404, 200]);
    expect(statusesOf(1).in(records)).toEqual([404]);
    expect(statusesOf(0).in(records)).toEqual([]);
  });

  test('are empty before the first record', () => {
    const records = new RecentRecords(BOUNDS);
    expect(records.latest({ limit: 10 })).toEqual([]);
    expect(records.lastNumber).toBe(0);
  });

  test('lose the oldest beyond the capacity', () => {
    const records = new RecentRecords(BOUNDS);
    fill(records, 200, 201, 202, 203, 204);
    expect(statusesOf(10).in(records)).toEqual([204, 203, 202]);
    expect(records.lastNumber).toBe(5);
  });

  test('lose the oldest beyond the bound in bytes, however large a record is', () => {
    const records = new RecentRecords({ ...BOUNDS, latest: { capacity: 100, capacityBytes: 4000 } });
    records.add(ended(200, 1500));
    records.add(ended(201, 1500));
    records.add(ended(202, 1500));
    expect(statusesOf(10).in(records)).toEqual([202, 201]);
    records.add(ended(203, 5000));
    expect(statusesOf(10).in(records)).toEqual([]);
    records.add(ended(204, 1500));
    expect(statusesOf(10).in(records)).toEqual([204]);
  });

  test('can be read from a number on, so that none is returned twice', () => {
    const records = new RecentRecords(BOUNDS);
    fill(records, 200, 201);
    const seen = records.lastNumber;
    fill(records, 202, 203);
    expect(statusesOf(10, seen).in(records)).toEqual([203, 202]);
    expect(statusesOf(10, records.lastNumber).in(records)).toEqual([]);
    fill(records, 204, 205);
    expect(statusesOf(10, seen).in(records)).toEqual([205, 204, 203]);
  });

  test('do not include one that could not be encoded', () => {
    const records = new RecentRecords(BOUNDS);
    records.add({ record: LEAST_RECORD, encodedSpan: null });
    expect([records.lastNumber, statusesOf(10).in(records)]).toEqual([0, []]);
  });

  test('may be as large as the bound in bytes', () => {
    const capacityBytes = ended(200).encodedSpan?.length ?? 0;
    const records = new RecentRecords({ ...BOUNDS, latest: { capacity: 100, capacityBytes } });
    fill(records, 200);
    expect(statusesOf(10).in(records)).toEqual([200]);
  });

  test('an encoded span that is no record is skipped', () => {
    const records = new RecentRecords(BOUNDS);
    records.add({ record: LEAST_RECORD, encodedSpan: encodeName('POST') });
    fill(records, 200);
    expect(statusesOf(10).in(records)).toEqual([200]);
  });
});

describe('the records of failed requests', () => {
  const failedOf = (records: RecentRecords, limit = 10, after = 0) =>
    records.failed({ limit, after }).map(({ status }) => status);
  const failuresOf = (records: RecentRecords, limit = 10, after = 0) =>
    records.latestAndFailures({ limit, after }).failures.map(({ status }) => status);

  test('stay, however many successes come after them', () => {
    const records = new RecentRecords(BOUNDS);
    fill(records, 502, 404, ...Array.from({ length: 50 }, () => 200));
    expect(failuresOf(records)).toEqual([404, 502]);
    expect(failedOf(records)).toEqual([404, 502]);
    expect(statusesOf(10).in(records)).toEqual([200, 200, 200]);
  });

  test('stay if they are errors, however many client errors come after them', () => {
    const records = new RecentRecords(BOUNDS);
    fill(records, 500, ...Array.from({ length: 50 }, () => 404), 502, 403);
    expect(failuresOf(records)).toEqual([403, 502, 404, 500]);
    expect(failedOf(records)).toEqual([403, 502, 404, 500]);
  });

  test('come from the latest records too, each once, if there are more than are kept for them', () => {
    const records = new RecentRecords({ ...BOUNDS, latest: { ...LATEST, capacity: 5 } });
    fill(records, 500, 501, 502, 200, 503, 404);
    expect(failuresOf(records)).toEqual([404, 503, 502]);
    expect(failedOf(records)).toEqual([404, 503, 502, 501]);
  });

  test('of one kind come from the latest records though those of the other kind are all kept', () => {
    const records = new RecentRecords({ ...BOUNDS, latest: { ...LATEST, capacity: 10 } });
    // Two errors are kept, so that the oldest of three is only among the latest, where successes and client errors are too.
    fill(records, 404, 200, 500, 501, 502);
    expect(failuresOf(records)).toEqual([502, 501, 404]);
    expect(failedOf(records)).toEqual([502, 501, 500, 404]);
  });

  test('can be read from a number on, at most the given number, and only those that match', () => {
    const records = new RecentRecords(BOUNDS);
    fill(records, 500, 200, 404);
    for (const read of [failedOf, failuresOf]) {
      expect(read(records, 1)).toEqual([404]);
      expect(read(records, 10, 1)).toEqual([404]);
    }
    const servers = records.failed({ limit: 10, matches: ({ status }) => status >= 500 });
    expect(servers.map(({ status }) => status)).toEqual([500]);
  });

  test('are read together with the latest ones', () => {
    const records = new RecentRecords(BOUNDS);
    fill(records, 500, 200, 404, 200);
    const { latest, failures } = records.latestAndFailures({ limit: 10 });
    expect(latest.map(({ status }) => status)).toEqual([200, 404, 200]);
    expect(failures.map(({ status }) => status)).toEqual([404, 500]);
    expect(failures[0]).toBe(latest[1]);
  });

  test('leave out clients that disconnected', () => {
    const records = new RecentRecords(BOUNDS);
    fill(records, 499);
    expect(failedOf(records)).toEqual([]);
    expect(failuresOf(records)).toEqual([]);
  });

  test('are found among the latest if they are too large to be kept for it', () => {
    const records = new RecentRecords({ ...BOUNDS, failures: { capacity: 2, capacityBytes: 2_000 } });
    records.add(ended(500, 3_000));
    expect(failuresOf(records)).toEqual([]);
    expect(failedOf(records)).toEqual([500]);
  });
});
