/** What OTLP/HTTP can carry: binary protobuf, or the same messages as JSON. */
export type OtlpProtocol = 'http/protobuf' | 'http/json';

/** OpenTelemetry specification, "OTLP Exporter Configuration". */
export const DEFAULT_PROTOCOL: OtlpProtocol = 'http/protobuf';

/** The Content-Type of requests and answers (OTLP specification, "Binary Protobuf Encoding", "JSON Protobuf Encoding"). */
export const CONTENT_TYPES = {
  'http/protobuf': 'application/x-protobuf',
  'http/json': 'application/json',
} as const satisfies Record<OtlpProtocol, string>;

/** Whether a text, such as the value of OTEL_EXPORTER_OTLP_PROTOCOL, is a protocol that the gateway has. */
export function isOtlpProtocol(text: string): text is OtlpProtocol {
  return Object.hasOwn(CONTENT_TYPES, text);
}
