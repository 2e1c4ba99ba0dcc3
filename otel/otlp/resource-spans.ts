import type { Resource } from '@opentelemetry/resources';
import { MAX_VARINT_BYTES, ProtobufWriter } from '#otel/encoding';
import { SCOPE as OUR_SCOPE } from '#otel/record/registry';
import { writeAttributes } from './protobuf/any-value.ts';
import { toAttributesJson } from './protobuf/attributes-to-json.ts';
import { RESOURCE, RESOURCE_SPANS, SCOPE, SCOPE_SPANS, SPAN, TRACES_DATA } from './protobuf/otlp-tags.ts';

/** The ResourceSpans of every batch without its spans: one resource, one scope. It never changes, so it is encoded once. */
export interface EncodedResourceSpans {
  /** The fields around the spans, in protobuf. */
  readonly protobuf: {
    readonly resource: Uint8Array;
    readonly scope: Uint8Array;
    readonly schemaUrl: Uint8Array;
  };
  /** The text before and after the spans, in JSON. */
  readonly json: { readonly before: Uint8Array; readonly after: Uint8Array };
}

const COMMA = Buffer.from(',');

/** The memory of a writer grows. */
const SOME_BYTES = 1024;

/**
 * Encodes a TracesData message without its spans (opentelemetry-proto, trace.proto). `version`: of the scope, which is the
 * gateway's; undefined: unknown.
 */
export function encodeResourceSpans(resource: Resource, version?: string): EncodedResourceSpans {
  const { attributes } = resource;
  const attributesJson = toAttributesJson(
    write((writer) => writeAttributes(writer, SPAN.attributes, attributes)),
  );
  const resourceJson = `{"attributes":${attributesJson},"droppedAttributesCount":0}`;
  const scopeJson = JSON.stringify({ name: OUR_SCOPE.name, version });
  return {
    protobuf: {
      resource: write((writer) => {
        const begun = writer.begin(RESOURCE_SPANS.resource);
        writeAttributes(writer, RESOURCE.attributes, attributes);
        writer.reserve(2);
        writer.byte(RESOURCE.droppedAttributesCount);
        writer.varint(0);
        writer.end(begun);
      }),
      scope: write((writer) => {
        const begun = writer.begin(SCOPE_SPANS.scope);
        writer.textField(SCOPE.name, OUR_SCOPE.name);
        if (version !== undefined) writer.textField(SCOPE.version, version);
        writer.end(begun);
      }),
      schemaUrl: write((writer) => writer.textField(SCOPE_SPANS.schemaUrl, OUR_SCOPE.schemaUrl)),
    },
    json: {
      before: Buffer.from(
        `{"resourceSpans":[{"resource":${resourceJson},"scopeSpans":[{"scope":${scopeJson},"spans":[`,
      ),
      after: Buffer.from(`],"schemaUrl":${JSON.stringify(OUR_SCOPE.schemaUrl)}}]}]}`),
    },
  };
}

/** Joins encoded spans to one OTLP/HTTP body in protobuf. `allocate`: returns memory of a size in bytes. */
export function joinBatch(
  { protobuf: { resource, scope, schemaUrl } }: EncodedResourceSpans,
  encodedSpans: readonly Uint8Array[],
  allocate?: (bytes: number) => Buffer<ArrayBuffer>,
): Buffer<ArrayBuffer> {
  const spanBytes = encodedSpans.reduce((bytes, { length }) => bytes + length, 0);
  const scopeSpansBytes = scope.length + spanBytes + schemaUrl.length;
  const scopeSpansHead = toHead(RESOURCE_SPANS.scopeSpans, scopeSpansBytes);
  const resourceSpansBytes = resource.length + scopeSpansHead.length + scopeSpansBytes;
  const head = toHead(TRACES_DATA.resourceSpans, resourceSpansBytes);
  return concat([head, resource, scopeSpansHead, scope, ...encodedSpans, schemaUrl], allocate);
}

/** Joins spans in JSON, each a text in UTF-8, to one OTLP/HTTP body, or one line of a file. `allocate`: as above. */
export function joinJsonBatch(
  { json: { before, after } }: EncodedResourceSpans,
  spans: readonly Uint8Array[],
  allocate?: (bytes: number) => Buffer<ArrayBuffer>,
): Buffer<ArrayBuffer> {
  const parts = spans.flatMap((span, index) => (index === 0 ? [span] : [COMMA, span]));
  return concat([before, ...parts, after], allocate);
}

function concat(
  parts: readonly Uint8Array[],
  allocate: (bytes: number) => Buffer<ArrayBuffer> = Buffer.allocUnsafe,
): Buffer<ArrayBuffer> {
  const bytes = allocate(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** The tag and the length of a message. */
function toHead(tag: number, length: number): Uint8Array {
  const writer = new ProtobufWriter(1 + MAX_VARINT_BYTES);
  writer.byte(tag);
  writer.varint(length);
  return writer.bytes.subarray(0, writer.at);
}

function write(content: (writer: ProtobufWriter) => void): Uint8Array {
  const writer = new ProtobufWriter(SOME_BYTES);
  content(writer);
  return writer.bytes.subarray(0, writer.at);
}
