import { toSpanJson } from '#otel/otlp';

/** Converting a record takes about 9 µs. After so many, the event loop relays what has arrived meanwhile. */
const RECORDS_PER_TURN = 16;

/** Records in OTLP JSON, in UTF-8, each with the spans of its attempts. */
export interface ConvertedSpans {
  readonly spans: readonly Uint8Array[];
  /** How many records are no spans. They are left out. */
  readonly malformedCount: number;
}

/** Converts encoded spans to OTLP JSON, a few at a time, so that a batch does not delay streams. */
export async function convertSpans(encodedSpans: readonly Uint8Array[]): Promise<ConvertedSpans> {
  const spans: Uint8Array[] = [];
  for (const [index, encodedSpan] of encodedSpans.entries()) {
    if (index > 0 && index % RECORDS_PER_TURN === 0) await new Promise(setImmediate);
    const json = toSpanJson(encodedSpan);
    if (json !== null) spans.push(Buffer.from(json));
  }
  return { spans, malformedCount: encodedSpans.length - spans.length };
}
