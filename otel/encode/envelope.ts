import type { Resource } from '@opentelemetry/resources';
import { SCHEMA_URL, SCOPE_NAME } from './attribute-names.ts';
import { encodeAttributes } from './encode-span.ts';

/** The bytes before and after the spans of every batch. They never change, so they are encoded once. */
export interface Envelope {
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

const SEPARATOR = Buffer.from(',');

/** Creates the envelope of a TracesData message (opentelemetry-proto, trace.proto): one resource, one scope. */
export function createEnvelope(resource: Resource): Envelope {
  const resourceJson = `{"attributes":${encodeAttributes(resource.attributes)},"droppedAttributesCount":0}`;
  const scopeJson = JSON.stringify({ name: SCOPE_NAME });
  return {
    before: Buffer.from(
      `{"resourceSpans":[{"resource":${resourceJson},"scopeSpans":[{"scope":${scopeJson},"spans":[`,
    ),
    after: Buffer.from(`],"schemaUrl":${JSON.stringify(SCHEMA_URL)}}]}]}`),
  };
}

/** Joins encoded spans to one OTLP/HTTP JSON body or one line of a file. */
export function joinBatch(envelope: Envelope, encodedSpans: readonly Uint8Array[]): Buffer {
  const parts: Uint8Array[] = [envelope.before];
  for (const [index, encodedSpan] of encodedSpans.entries()) {
    if (index > 0) parts.push(SEPARATOR);
    parts.push(encodedSpan);
  }
  parts.push(envelope.after);
  return Buffer.concat(parts);
}
