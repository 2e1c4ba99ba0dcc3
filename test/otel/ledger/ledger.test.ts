import { describe, expect, test } from 'vitest';
import { toSpanJson } from '#otel/encode/protobuf/span-to-json.ts';
import { Ledger } from '#otel/ledger/ledger.ts';
import type { ExportedLedger } from '../../../src/verify-ledger/exported-span.ts';
import { SpanReader } from '../../../src/verify-ledger/exported-span.ts';
import { encodeRecord } from '../../verify-ledger/generated-records.ts';
import { createQuietLog } from '../quiet-log.ts';
import { FULL_RECORD } from '../records.ts';
import { VirtualClock } from '../virtual-clock.ts';

/** A ledger with an interval of a minute, and what it has published. */
function startLedger({ waiting = 0 } = {}) {
  const clock = new VirtualClock();
  const published: ExportedLedger[] = [];
  const ledger = new Ledger(60_000, {
    publish(encodedSpan) {
      const [span] = new SpanReader().readSpans(toSpanJson(encodedSpan) ?? '');
      if (span?.kind === 'ledger') published.push(span);
    },
    waitingCount: () => waiting,
    clock,
    epochMs: () => 1_795_000_000_000,
    log: createQuietLog(),
  });
  const toRecord = (seq: number, instance = 'a') => ({ ...FULL_RECORD, instance, seq });
  return {
    ...{ clock, ledger, published },
    queued: (seq: number, instance = 'a') =>
      ledger.queued(toRecord(seq, instance), encodeRecord(toRecord(seq, instance))),
    dropped: (seq: number) => ledger.notQueued(toRecord(seq), 'dropped'),
    encoded: (seq: number, instance = 'a') => encodeRecord(toRecord(seq, instance)),
  };
}

describe('the ledger', () => {
  test('says after an interval what became of each number, and nothing if nothing happened', async () => {
    const { clock, published, queued, dropped } = startLedger();
    await clock.advance(60_000);
    expect(published).toEqual([]);
    queued(1);
    dropped(2);
    await clock.advance(60_000);
    await clock.advance(60_000);
    expect(published).toMatchObject([
      { number: 1, firstSeq: 1, lastSeq: 2, count: 1, dropped: [{ first: 2, last: 2 }], isIntact: true },
    ]);
    expect(published[0]?.tokens).toEqual({ prompt: 120, completion: 45, cached: 0 });
  });

  test('takes numbers that a worker has left out for dropped ones', () => {
    const { ledger, published, queued } = startLedger();
    queued(1);
    queued(5);
    ledger.end();
    expect(published).toMatchObject([
      { lastSeq: 5, count: 2, dropped: [{ first: 2, last: 4 }], isFinal: true },
    ]);
  });

  test('ends the instance of a worker that died with what it had numbered and begun', () => {
    const { ledger, published, queued } = startLedger();
    queued(1, 'a.1');
    ledger.instanceEnded('a.1', { open: 2, numbered: 4 });
    ledger.instanceEnded('a.2', { open: 0, numbered: 0 });
    ledger.end();
    expect(published).toMatchObject([
      { instance: 'a.1', lastSeq: 6, count: 1, lost: [{ first: 2, last: 6 }], isFinal: true },
    ]);
  });

  test('names the instance of rejected records that an earlier run has made', () => {
    const { ledger, published, queued, encoded } = startLedger();
    queued(1);
    ledger.rejected([encoded(1), encoded(7, 'earlier')]);
    ledger.end();
    expect(published[0]?.rejected).toEqual([
      { instance: 'a', first: 1, last: 1 },
      { instance: 'earlier', first: 7, last: 7 },
    ]);
  });

  test('waits with dropped records alone while many ledger spans could not be sent', async () => {
    const { clock, published, queued, dropped } = startLedger({ waiting: 64 });
    dropped(1);
    await clock.advance(60_000);
    expect(published).toEqual([]);
    queued(2);
    await clock.advance(60_000);
    expect(published).toMatchObject([{ firstSeq: 1, lastSeq: 2 }]);
  });

  test('says sooner what would become too long', () => {
    const { published, queued } = startLedger();
    for (let seq = 1; seq <= 1024; seq += 1) queued(seq);
    expect(published).toHaveLength(1);
    for (let seq = 1026; seq < 1026 + 512; seq += 2) queued(seq);
    expect(published).toHaveLength(2);
  });
});
