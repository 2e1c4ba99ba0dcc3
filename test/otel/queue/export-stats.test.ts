import { expect, test } from 'vitest';
import { ExportCounters } from '../../../otel/queue/export-stats.ts';

test('all counters begin at 0, and each counts for itself', () => {
  const counters = new ExportCounters();
  const names = [
    ...(['recorded', 'exported', 'dropped', 'rejected', 'failedCalls'] as const),
    ...(['restored', 'spooled', 'unreadable', 'lost'] as const),
  ];
  const zeros = Object.fromEntries(names.map((name) => [name, 0]));
  const before = counters.values;
  expect(before).toEqual(zeros);
  for (const [index, name] of names.entries()) counters.add(name, index);
  counters.add('lost');
  const counted = Object.fromEntries(names.map((name, index) => [name, index]));
  expect(counters.values).toEqual({ ...counted, lost: names.length });
  expect(before).toEqual(zeros);
});
