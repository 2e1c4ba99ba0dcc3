import OpenAI from 'openai';
import type { CollectedSpan, FakeCollector } from '#testkit/fake-collector.ts';

/** A client of the gateway, and the records of its requests. */
export interface RecordedClient {
  readonly openai: OpenAI;
  /** The record of a response, by its X-Request-Id. */
  readonly recordOf: (response: Response) => Promise<GatewayRecord>;
  readonly recordById: (requestId: string | null) => Promise<GatewayRecord>;
}

/** A record as the collector received it: the attributes of its span, without the prefix `gateway.`. */
export type GatewayRecord = Readonly<Record<string, CollectedSpan['attributes'][string]>>;

export function createRecordedClient(gatewayUrl: string, collector: FakeCollector): RecordedClient {
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

/** Times of a stream as its client measured them, at each chunk with output. */
export interface MeasuredStream {
  readonly ttftMs: number;
  readonly gapsMs: readonly number[];
}

/** Measures a stream from its creation on. */
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
