import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { RequestRecord } from '#otel/record/registry';
import { LEAST_RECORD } from '#testkit/records/records.ts';
import { PendingRecords } from '../../../src/proxy/record/pending-records.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Records by their status; `closed` are the requests that were told that they are over. */
function createPending() {
  const closed: number[] = [];
  const made: number[] = [];
  const pending = new PendingRecords((error) => {
    throw error;
  });
  const end = (status: number, bodyBytes = 1000) =>
    pending.add({
      bodyBytes,
      close: () => void closed.push(status),
      finish: (): RequestRecord => {
        made.push(status);
        return { ...LEAST_RECORD, status };
      },
    });
  return { pending, end, closed, made };
}

test('a request is closed at once, and its record made with those of others, in their order', () => {
  const { end, closed, made } = createPending();
  end(200);
  vi.advanceTimersByTime(4);
  end(404);
  expect(closed).toEqual([200, 404]);
  expect(made).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(made).toEqual([200, 404]);
  end(500);
  vi.advanceTimersByTime(5);
  expect(made).toEqual([200, 404, 500]);
});

test('sixteen requests do not wait', () => {
  const { end, made } = createPending();
  for (let status = 1; status <= 17; status++) end(status);
  expect(made).toHaveLength(16);
  vi.advanceTimersByTime(5);
  expect(made).toHaveLength(17);
});

test('large bodies are not kept', () => {
  const { end, made } = createPending();
  end(200, 40_000);
  expect(made).toEqual([]);
  end(201, 30_000);
  expect(made).toEqual([200, 201]);
  end(202, 40_000);
  expect(made).toEqual([200, 201]);
  end(203, 10_000_000);
  expect(made).toEqual([200, 201, 202, 203]);
});

test('waiting records can be made at once, and are not made twice', () => {
  const { pending, end, made } = createPending();
  end(200);
  pending.flush();
  vi.advanceTimersByTime(10);
  expect(made).toEqual([200]);
});
