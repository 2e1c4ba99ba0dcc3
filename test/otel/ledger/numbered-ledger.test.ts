import { describe, expect, test } from 'vitest';
import { AttributesDigester, toSpanJson } from '#otel/otlp';
import { LEDGER } from '#otel/record/registry';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { VirtualClock } from '#testkit/otel/virtual-clock.ts';
import { encodeRecord } from '#testkit/records/generated-records.ts';
import { FULL_RECORD } from '#testkit/records/records.ts';
import { Ledger } from '../../../otel/ledger/numbered-ledger.ts';
import type { ExportedLedger } from '../../../src/records/verify/exported-span.ts';
import { SpanReader } from '../../../src/records/verify/exported-span.ts';

/** A ledger with an interval of a minute, and what it has published. */
function startLedger({ waiting = 0, epochMs = (): number => 1_795_000_000_000 } = {}) {
  const clock = new VirtualClock();
  const log = createQuietLog();
  const published: ExportedLedger[] = [];
  const texts: string[] = [];
  const ledger = new Ledger(60_000, {
    publish(encodedSpan) {
      const text = toSpanJson(encodedSpan) ?? '';
      texts.push(text);
      const span = new SpanReader().readSpan(JSON.parse(text));
      if (span?.kind === 'ledger') published.push(span);
    },
    waitingCount: () => waiting,
    clock,
    epochMs,
    log,
  });
  const toRecord = (seq: number, instance = 'a') => ({ ...FULL_RECORD, instance, seq });
  return {
    clock,
    ledger,
    log,
    published,
    texts,
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

  test('publishes a span with the time that it covers, and each number alone or as a range', () => {
    const times = [1_795_000_000_250, 1_795_000_001_500];
    const { ledger, texts, dropped } = startLedger({ epochMs: () => times.shift() ?? 0 });
    dropped(1);
    ledger.queued(
      { ...FULL_RECORD, instance: 'a', seq: 2, cached_tokens: 7 },
      encodeRecord({ ...FULL_RECORD, instance: 'a', seq: 2, cached_tokens: 7 }),
    );
    ledger.end();
    expect(JSON.parse(texts[0] ?? '')).toMatchObject({
      traceId: expect.stringMatching(/^[0-9a-f]{32}$/),
      spanId: expect.stringMatching(/^[0-9a-f]{16}$/),
      name: LEDGER.span,
      kind: 1,
      flags: 0x101,
      startTimeUnixNano: '1795000000250000000',
      endTimeUnixNano: '1795000001500000000',
      attributes: expect.arrayContaining([
        { key: LEDGER.cachedTokens, value: { intValue: '7' } },
        { key: LEDGER.dropped, value: { arrayValue: { values: [{ stringValue: '1' }] } } },
      ]),
    });
  });

  test('begins each span where the one before has ended, and says only of the last that it is', async () => {
    const times = [1_795_000_000_000, 1_795_000_001_000.1, 1_795_000_002_999, 1_795_000_001_000];
    const { clock, ledger, texts, dropped } = startLedger({ epochMs: () => times.shift() ?? 0 });
    for (const seq of [1, 2]) {
      dropped(seq);
      await clock.advance(60_000);
    }
    dropped(3);
    ledger.end();
    const spans = texts.map((text) => JSON.parse(text));
    expect(
      spans.map(({ startTimeUnixNano, endTimeUnixNano }) => [startTimeUnixNano, endTimeUnixNano]),
    ).toEqual([
      ['1795000000000000000', '1795000001000100098'],
      ['1795000001000100098', '1795000002999000000'],
      // The clock was put back.
      ['1795000001000000000', '1795000001000000000'],
    ]);
    const namesOf = ({ attributes }: { attributes: { key: string }[] }) => attributes.map(({ key }) => key);
    expect(spans.map((span) => namesOf(span).includes(LEDGER.final))).toEqual([false, false, true]);
    for (const name of [LEDGER.lost, LEDGER.unencodable, LEDGER.rejected])
      expect(namesOf(spans[0])).not.toContain(name);
  });

  test('keeps the first 16 bytes of the digest of each record, in a chain that begins with zeros', async () => {
    const { clock, published, queued, encoded } = startLedger();
    for (const seq of [1, 2]) queued(seq);
    await clock.advance(60_000);
    queued(3);
    await clock.advance(60_000);
    const digester = new AttributesDigester();
    const digests = [1, 2].map(
      (seq) => digester.digestSpan(encoded(seq))?.subarray(0, 16) ?? Buffer.alloc(0),
    );
    expect(published[0]?.digests).toEqual(Buffer.concat(digests));
    expect(published[0]?.previous).toBe('0'.repeat(64));
    expect(published[1]?.previous).toBe(published[0]?.chain);
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

  test('ends the instance of a worker that died with what it had begun', () => {
    const { ledger, published, queued } = startLedger();
    queued(1, 'a.1');
    ledger.instanceEnded('a.1', 6);
    ledger.instanceEnded('a.2', 0);
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

  test('publishes pages of queued records alone, and of rejected ones alone', async () => {
    const { clock, ledger, published, queued, encoded } = startLedger();
    queued(1);
    await clock.advance(60_000);
    ledger.rejected([encoded(1)]);
    await clock.advance(60_000);
    expect(published).toMatchObject([
      { firstSeq: 1, lastSeq: 1, count: 1 },
      { count: 0, rejected: [{ instance: 'a', first: 1, last: 1 }] },
    ]);
  });

  test('still tells of dropped records alone while fewer than 64 ledger spans wait', async () => {
    const { clock, published, dropped } = startLedger({ waiting: 63 });
    dropped(1);
    await clock.advance(60_000);
    expect(published).toHaveLength(1);
  });

  test('knows nothing of records without a number, and of bytes that are no record', () => {
    const { ledger, log, texts, encoded } = startLedger();
    const { instance: _, seq: __, ...record } = FULL_RECORD;
    ledger.queued(record, encodeRecord(FULL_RECORD));
    for (const part of [{ instance: 'a' }, { seq: 1 }])
      ledger.queued({ ...record, ...part }, encodeRecord(FULL_RECORD));
    ledger.queued({ ...record, instance: 'a', seq: 1 }, new Uint8Array());
    for (const part of [{}, { instance: 'a' }, { seq: 1 }])
      ledger.notQueued({ ...record, ...part }, 'dropped');
    ledger.rejected([encoded(7, 'earlier')]);
    ledger.end();
    expect([texts, log.lines]).toEqual([[], []]);
  });

  test('passes over rejected bytes that are no record with a number', () => {
    const { ledger, published, texts, queued, encoded } = startLedger();
    const { instance: _, seq: __, ...record } = FULL_RECORD;
    queued(1);
    const parts = [{ instance: 'a' }, { seq: 1 }].map((part) => encodeRecord({ ...record, ...part }));
    ledger.rejected([Uint8Array.of(1), ...parts, encoded(1)]);
    ledger.end();
    expect(published[0]?.rejected).toEqual([{ instance: 'a', first: 1, last: 1 }]);
    expect(texts.join()).not.toMatch(/undefined|NaN/);
  });

  test('joins the numbers of rejected records that follow each other', () => {
    const { ledger, published, queued, encoded } = startLedger();
    queued(1);
    ledger.rejected([encoded(1), encoded(2)]);
    ledger.end();
    expect(published[0]?.rejected).toEqual([{ instance: 'a', first: 1, last: 2 }]);
  });

  test('says sooner what has too many ranges in the ledger of the instance that has them', () => {
    const { ledger, published, queued, encoded } = startLedger();
    queued(1, 'a');
    queued(1, 'b');
    ledger.rejected(Array.from({ length: 256 }, (_, index) => encoded(2 * index + 1, 'b')));
    expect(published.map(({ instance }) => instance)).toEqual(['b']);
  });

  test('tells of a rejected record in the ledger of its instance', () => {
    const { ledger, published, queued, encoded } = startLedger();
    queued(1, 'a');
    queued(1, 'b');
    ledger.rejected([encoded(1, 'b')]);
    ledger.end();
    expect(published.map(({ instance, rejected }) => [instance, rejected.length])).toEqual([
      ['a', 0],
      ['b', 1],
    ]);
  });

  test('counts no tokens for a record that has none', () => {
    const { ledger, published, texts } = startLedger();
    const { prompt_tokens: _, completion_tokens: __, cached_tokens: ___, ...record } = FULL_RECORD;
    const numbered = { ...record, instance: 'a', seq: 1 };
    ledger.queued(numbered, encodeRecord(numbered));
    ledger.end();
    expect(published[0]?.tokens).toEqual({ prompt: 0, completion: 0, cached: 0 });
    const zeros = [LEDGER.promptTokens, LEDGER.completionTokens, LEDGER.cachedTokens].map((key) => ({
      key,
      value: { intValue: '0' },
    }));
    expect(JSON.parse(texts[0] ?? '').attributes).toEqual(expect.arrayContaining(zeros));
  });

  test('says sooner what has too many ranges: of records that were not queued, and of rejected ones', () => {
    const { ledger, published, encoded } = startLedger();
    // Each of these numbers is a range, and so is the one before it, which was left out.
    for (let seq = 2; seq <= 254; seq += 2)
      ledger.notQueued({ ...FULL_RECORD, instance: 'a', seq }, 'unencodable');
    expect(published).toHaveLength(0);
    ledger.notQueued({ ...FULL_RECORD, instance: 'a', seq: 256 }, 'unencodable');
    expect(published).toHaveLength(1);
    ledger.rejected(Array.from({ length: 256 }, (_, index) => encoded(2 * index + 1)));
    expect(published).toHaveLength(2);
    ledger.rejected(Array.from({ length: 256 }, (_, index) => encoded(index, 'earlier')));
    expect(published).toHaveLength(3);
  });

  test('ends an instance at once, and counts what it has begun modulo 2^32', () => {
    const { ledger, published, queued } = startLedger();
    ledger.instanceEnded('a.1', 2);
    expect(published).toMatchObject([{ instance: 'a.1', lost: [{ first: 1, last: 2 }], isFinal: true }]);
    ledger.instanceEnded('a.2', 3_000_000_000);
    expect(published[1]).toMatchObject({ lost: [{ first: 1, last: 3_000_000_000 }] });
    queued(2 ** 32 - 1, 'a.3');
    ledger.instanceEnded('a.3', 0);
    expect(published[2]).toMatchObject({ lost: [{ first: 2 ** 32, last: 2 ** 32 }] });
    queued(1, 'a.4');
    ledger.instanceEnded('a.4', 2);
    expect(published[3]).toMatchObject({ lost: [{ first: 2, last: 2 }], isFinal: true });
  });

  test('writes the last chain of an instance to the log, and nothing after its end', async () => {
    const { clock, ledger, log, published, queued } = startLedger();
    queued(1);
    ledger.end();
    expect(log.lines).toEqual([
      {
        level: 'info',
        fields: { instance: 'a', records: 1, chain: expect.stringMatching(/^[0-9a-f]{64}$/) },
        message: 'ledger closed',
      },
    ]);
    ledger.instanceEnded('a.1', 2);
    queued(2);
    await clock.advance(60_000);
    expect(published).toHaveLength(1);
  });
});
