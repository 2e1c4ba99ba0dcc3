import { expect, it } from 'vitest';
import { NO_LEDGER, type RecordLoss, tellLosses } from '#otel/ledger';
import { encodeRecord } from '#testkit/records/generated-records.ts';
import { FULL_RECORD } from '#testkit/records/records.ts';

function listen() {
  const told: RecordLoss[] = [];
  const calls: string[] = [];
  const ledger = tellLosses(
    {
      ...NO_LEDGER,
      queued: ({ seq }) => calls.push(`queued ${seq}`),
      notQueued: ({ seq }, why) => calls.push(`${why} ${seq}`),
      rejected: (spans) => calls.push(`rejected ${spans.length}`),
      instanceEnded: (instance, begun) => calls.push(`ended ${instance} ${begun}`),
      end: () => calls.push('end'),
    },
    (loss) => told.push(loss),
  );
  const record = (seq: number, instance = 'a') => ({ ...FULL_RECORD, instance, seq });
  return { ledger, told, calls, record };
}

it('tells of records that were dropped or not encoded, and of those that a worker did not even send', () => {
  const { ledger, told, record, calls } = listen();
  const span = new Uint8Array();
  ledger.queued(record(1), span);
  ledger.notQueued(record(2), 'dropped');
  ledger.queued(record(5), span);
  ledger.queued(record(1, 'b'), span);
  ledger.notQueued(record(6), 'unencodable');
  expect(told).toEqual([
    { instance: 'a', first: 2, last: 2, why: 'dropped', isKnown: true },
    { instance: 'a', first: 3, last: 4, why: 'dropped', isKnown: false },
    { instance: 'a', first: 6, last: 6, why: 'unencodable', isKnown: false },
  ]);
  expect(calls).toEqual(['queued 1', 'dropped 2', 'queued 5', 'queued 1', 'unencodable 6']);
});

it('tells of records that end with their worker, as the ledger counts them', () => {
  const { ledger, told, record } = listen();
  ledger.queued(record(1, 'a.1'), new Uint8Array());
  ledger.instanceEnded('a.1', 4);
  ledger.instanceEnded('a.2', 2);
  ledger.instanceEnded('a.3', 0);
  expect(told).toEqual([
    { instance: 'a.1', first: 2, last: 4, why: 'lost', isKnown: false },
    { instance: 'a.2', first: 1, last: 2, why: 'lost', isKnown: false },
  ]);
});

it('tells of records that the collector has refused, of earlier runs too', () => {
  const { ledger, told, record } = listen();
  ledger.rejected([encodeRecord(record(7)), encodeRecord(record(3, 'before')), new Uint8Array()]);
  expect(told).toEqual([
    { instance: 'a', first: 7, last: 7, why: 'rejected', isKnown: true },
    { instance: 'before', first: 3, last: 3, why: 'rejected', isKnown: true },
  ]);
});
