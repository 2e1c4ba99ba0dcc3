import type { RequestRecord } from '#otel/record/registry';
import { createEventRelay, endpointAt, toReading } from '#testkit/reading/response-reading.ts';
import { IS_NIGHT } from '#testkit/runs.ts';
import { JsonTap } from '../../../../src/proxy/response/json-tap.ts';

/** What a stream says to a record, beside times. */
export interface StreamFacts {
  readonly record: Partial<RequestRecord>;
  readonly isDone: boolean;
  readonly isWhole: boolean;
  readonly hasError: boolean;
  /** The arrival time of the first event with output, where each read arrives one millisecond after the last. */
  readonly firstOutputMs: number | undefined;
}

/** Reads a stream of an endpoint that comes in these reads, and checks that they are relayed as they are. */
export function readStream(path: string, reads: readonly (Buffer | string)[]): StreamFacts {
  const { tap, events } = createEventRelay({ endpoint: endpointAt(path) });
  for (const [i, read] of reads.entries()) {
    const bytes = Buffer.from(read);
    const out = events.push(bytes, i + 1);
    if (out.length !== 1 || out[0] !== bytes) throw new Error('a read was changed');
  }
  if (events.end().length > 0) throw new Error('bytes were added');
  const record: Partial<RequestRecord> = {};
  tap.fill(record);
  const { ttft_ms, gap_p50_ms, gap_p95_ms, tokens_per_second, ...facts } = record;
  const { isDone, isWhole, hasError } = tap;
  return { record: facts, isDone, isWhole, hasError, firstOutputMs: ttft_ms };
}

/** What a whole answer of an endpoint says to a record, if it comes in these reads. */
export function readWhole(path: string, reads: readonly (Buffer | string)[]): Partial<RequestRecord> {
  const tap = new JsonTap(toReading({ endpoint: endpointAt(path) }));
  for (const read of reads) tap.push(Buffer.from(read));
  const record: Partial<RequestRecord> = {};
  tap.fill(record);
  return record;
}

/** An event as both APIs write it: with its type in a line of its own, too. */
export function typedEvent(data: { readonly type: string; readonly [member: string]: unknown }): string {
  return `event: ${data.type}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** The bytes cut in two: at every place at night, and at three of seven on each change. */
export function* cutsOf(bytes: Buffer): Generator<readonly [Buffer, Buffer]> {
  for (let at = 0; at <= bytes.length; at += IS_NIGHT ? 1 : 1 + (at % 7)) {
    yield [bytes.subarray(0, at), bytes.subarray(at)];
  }
}
