import { describe, expect, test } from 'vitest';
import { RecentRecords } from '#otel/queue/recent-records.ts';
import { encodeName, encodeRecord } from '../encoded-spans.ts';
import { LEAST_RECORD } from '../records.ts';

/** The encoded span of a record with this status, with a name that makes it at least so many bytes long. */
const encodedSpanOf = (status: number, nameLength = 0) =>
  encodeRecord({ ...LEAST_RECORD, status }, nameLength);

const BOUNDS = { capacity: 3, capacityBytes: 1024 * 1024 };

const fill = (records: RecentRecords, ...statuses: readonly number[]) => {
  for (const status of statuses) records.add(encodedSpanOf(status));
};

const statusesOf = (...given: Parameters<RecentRecords['latest']>) => ({
  in: (records: RecentRecords) => records.latest(...given).map(({ status }) => status),
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
    expect(records.latest(10)).toEqual([]);
    expect(records.lastNumber).toBe(0);
  });

  test('lose the oldest beyond the capacity', () => {
    const records = new RecentRecords(BOUNDS);
    fill(records, 200, 201, 202, 203, 204);
    expect(statusesOf(10).in(records)).toEqual([204, 203, 202]);
    expect(records.lastNumber).toBe(5);
  });

  test('lose the oldest beyond the bound in bytes, however large a record is', () => {
    const records = new RecentRecords({ capacity: 100, capacityBytes: 4000 });
    records.add(encodedSpanOf(200, 1500));
    records.add(encodedSpanOf(201, 1500));
    records.add(encodedSpanOf(202, 1500));
    expect(statusesOf(10).in(records)).toEqual([202, 201]);
    records.add(encodedSpanOf(203, 5000));
    expect(statusesOf(10).in(records)).toEqual([]);
    records.add(encodedSpanOf(204, 1500));
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

  test('an encoded span that is no record is skipped', () => {
    const records = new RecentRecords(BOUNDS);
    records.add(encodeName('POST'));
    fill(records, 200);
    expect(statusesOf(10).in(records)).toEqual([200]);
  });
});
