import type { Resource } from '@opentelemetry/resources';
import { SCHEMA_URL, SCOPE_NAME } from './attribute-names.ts';
import { encodeAttributes } from './encode-span.ts';

/** What stands before and after the spans of every batch. It does not change, so it is encoded once. */
export interface Envelope {
  readonly before: Uint8Array;
  readonly after: Uint8Array;
}

const SEPARATOR = Buffer.from(',');

/** The envelope of a TracesData message (opentelemetry-proto, trace.proto): one resource, one scope. */
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

/** One OTLP/HTTP JSON body, or one line of a file, of encoded spans. */
export function joinBatch(envelope: Envelope, lines: readonly Uint8Array[]): Buffer {
  const parts: Uint8Array[] = [envelope.before];
  for (const [index, line] of lines.entries()) {
    if (index > 0) parts.push(SEPARATOR);
    parts.push(line);
  }
  parts.push(envelope.after);
  return Buffer.concat(parts);
}
