import type { Resource } from '@opentelemetry/resources';
import { SCHEMA_URL, SCOPE_NAME } from './attribute-names.ts';
import { encodeAttributes } from './encode-span.ts';

/** The ResourceSpans of every batch: its JSON before and after the spans. It never changes, so it is encoded once. */
export interface EncodedResourceSpans {
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

const SEPARATOR = Buffer.from(',');

/** Encodes a TracesData message without its spans (opentelemetry-proto, trace.proto): one resource, one scope. */
export function encodeResourceSpans(resource: Resource): EncodedResourceSpans {
  const resourceJson = `{"attributes":${encodeAttributes(resource.attributes)},"droppedAttributesCount":0}`;
  const scopeJson = JSON.stringify({ name: SCOPE_NAME });
  return {
    before: Buffer.from(
      `{"resourceSpans":[{"resource":${resourceJson},"scopeSpans":[{"scope":${scopeJson},"spans":[`,
    ),
    after: Buffer.from(`],"schemaUrl":${JSON.stringify(SCHEMA_URL)}}]}]}`),
  };
}

/** Joins encoded spans to one OTLP/HTTP JSON body, or one line of a file. */
export function joinBatch(resourceSpans: EncodedResourceSpans, encodedSpans: readonly Uint8Array[]): Buffer {
  const parts: Uint8Array[] = [resourceSpans.before];
  for (const [index, encodedSpan] of encodedSpans.entries()) {
    if (index > 0) parts.push(SEPARATOR);
    parts.push(encodedSpan);
  }
  parts.push(resourceSpans.after);
  return Buffer.concat(parts);
}
