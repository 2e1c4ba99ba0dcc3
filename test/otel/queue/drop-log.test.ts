import { expect, test } from 'vitest';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { DropLog } from '../../../otel/queue/drop-log.ts';
import { createRecordQueue } from './create-queue.ts';

function createFullQueue() {
  const queue = createRecordQueue({ capacity: 4, capacityBytes: 1000 });
  while (queue.offer({ encodedSpan: Buffer.from('x'), queuedAtMs: 0 }));
  const log = createQuietLog();
  return { queue, log, dropLog: new DropLog(queue, log) };
}

test('dropping is logged once when it begins, and once with the number when the queue is half empty', () => {
  const { queue, log, dropLog } = createFullQueue();
  for (let index = 0; index < 3; index += 1) dropLog.dropped(1);
  queue.remove(1);
  dropLog.removed();
  expect(log.lines).toMatchObject([{ level: 'warn', fields: { queued: 4, bytes: 4 } }]);
  queue.remove(1);
  dropLog.removed();
  dropLog.removed();
  expect(log.lines.slice(1)).toMatchObject([{ level: 'warn', fields: { dropped: 3 } }]);
});

test('no line is logged when nothing was dropped', () => {
  const { queue, log, dropLog } = createFullQueue();
  dropLog.dropped(0);
  queue.remove(4);
  dropLog.removed();
  dropLog.end();
  expect(log.lines).toEqual([]);
});

test('dropping that goes on until the end is logged at the end', () => {
  const { log, dropLog } = createFullQueue();
  dropLog.dropped(1);
  dropLog.end();
  dropLog.end();
  expect(log.lines).toHaveLength(2);
});
