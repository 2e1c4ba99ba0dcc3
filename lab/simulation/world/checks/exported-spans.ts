import type { CollectedSpan } from './facts.ts';

interface SpanJson {
  readonly spanId: string;
  readonly traceId: string;
  readonly attributes: readonly { readonly key: string; readonly value: Readonly<Record<string, unknown>> }[];
}

interface TracesJson {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly SpanJson[] }[];
  }[];
}

/** What a gateway has exported at once. */
export interface ExportedSpans {
  /** The spans of requests. */
  readonly records: readonly CollectedSpan[];
  readonly ledgers: readonly CollectedSpan[];
}

/** Reads a TracesData in OTLP JSON. Spans of operators' calls are neither. */
export function readTraces(traces: unknown): ExportedSpans {
  const spans = (traces as TracesJson).resourceSpans
    .flatMap(({ scopeSpans }) => scopeSpans)
    .flatMap((scopeSpans) => scopeSpans.spans)
    .map((json) => ({
      spanId: json.spanId,
      traceId: json.traceId,
      json,
      attributes: Object.fromEntries(json.attributes.map(({ key, value }) => [key, toPlain(value)])),
    }));
  return {
    records: spans.filter(({ attributes }) => 'gateway.request_id' in attributes),
    ledgers: spans.filter(({ attributes }) => 'gateway.ledger.number' in attributes),
  };
}

function toPlain(value: Readonly<Record<string, unknown>>): string | number | boolean {
  const [[kind, plain] = []] = Object.entries(value);
  if (kind === 'intValue') return Number(plain);
  return typeof plain === 'boolean' || typeof plain === 'number' ? plain : String(plain);
}
