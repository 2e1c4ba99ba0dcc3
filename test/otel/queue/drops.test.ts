import { expect, test } from 'vitest';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { Drops } from '../../../otel/queue/drops.ts';
import { createRecordQueue } from './create-queue.ts';

function createFullQueue() {
  const queue = createRecordQueue({ capacity: 4, capacityBytes: 1000 });
  while (queue.offer({ encodedSpan: Buffer.from('x'), queuedAtMs: 0 }));
  const log = createQuietLog();
  return { queue, log, drops: new Drops(queue, log) };
}

test('dropping goes on from the first dropped record until the queue is half empty', () => {
  const { queue, drops } = createFullQueue();
  const remove = (count: number) => {
    queue.remove(count);
    drops.removed();
    return drops.isGoingOn;
  };
  expect(drops.isGoingOn).toBe(false);
  drops.dropped(3);
  expect([drops.isGoingOn, remove(1), remove(1)]).toEqual([true, true, false]);
  drops.dropped(2);
  expect([drops.isGoingOn, drops.count]).toEqual([true, 5]);
});

test('nothing is going on, and no line is logged, when nothing was dropped', () => {
  const { log, drops } = createFullQueue();
  drops.dropped(0);
  expect(drops.isGoingOn).toBe(false);
  drops.end();
  expect(log.lines).toEqual([]);
});

test('the end has one line with all records that were dropped', () => {
  const { log, drops } = createFullQueue();
  drops.dropped(1);
  drops.removed();
  drops.dropped(2);
  drops.end();
  drops.end();
  expect(log.lines).toMatchObject([{ level: 'warn', fields: { dropped: 3 } }]);
});
