import OpenAI from 'openai';
import type { CollectedSpan, FakeCollector } from '../../test/support/fake-collector.ts';

/** A client of the gateway, and the records of what it asked. */
export interface Bench {
  readonly openai: OpenAI;
  /** The record of a response, by the X-Request-Id that the gateway gave it. */
  readonly recordOf: (response: Response) => Promise<GatewayRecord>;
  readonly recordById: (requestId: string | null) => Promise<GatewayRecord>;
}

/** A record as the collector got it: the attributes of its span, without `gateway.`. */
export type GatewayRecord = Readonly<Record<string, CollectedSpan['attributes'][string]>>;

export function createBench(gatewayUrl: string, collector: FakeCollector): Bench {
  const recordById = async (requestId: string | null) => {
    const find = () => collector.spans.find((span) => span.attributes['gateway.request_id'] === requestId);
    await collector.waitFor(() => find() !== undefined);
    return toRecord(find()?.attributes ?? {});
  };
  return {
    openai: new OpenAI({ baseURL: `${gatewayUrl}/v1`, apiKey: 'none', maxRetries: 0 }),
    recordById,
    recordOf: (response) => recordById(response.headers.get('x-request-id')),
  };
}

function toRecord(attributes: CollectedSpan['attributes']): GatewayRecord {
  const prefix = 'gateway.';
  return Object.fromEntries(
    Object.entries(attributes)
      .filter(([name]) => name.startsWith(prefix))
      .map(([name, value]) => [name.slice(prefix.length), value]),
  );
}

/** What a client measures of a stream: from before it asks, at each chunk that carries output. */
export interface MeasuredStream {
  readonly ttftMs: number;
  readonly gapsMs: readonly number[];
}

/** Notes when output comes. */
export class StreamClock {
  readonly #startedMs = performance.now();
  readonly #outputsMs: number[] = [];

  noteOutput(): void {
    this.#outputsMs.push(performance.now());
  }

  finish(): MeasuredStream {
    const at = this.#outputsMs;
    return {
      ttftMs: (at[0] ?? Number.NaN) - this.#startedMs,
      gapsMs: at.slice(1).map((ms, index) => ms - (at[index] ?? Number.NaN)),
    };
  }
}

/** The percentile at rank p·(n−1), interpolated linearly, as docs/record.md defines it. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const rank = p * (sorted.length - 1);
  const low = sorted[Math.floor(rank)] ?? Number.NaN;
  const high = sorted[Math.ceil(rank)] ?? Number.NaN;
  return low + (high - low) * (rank - Math.floor(rank));
}

export function median(values: readonly number[]): number {
  return percentile(values, 0.5);
}
