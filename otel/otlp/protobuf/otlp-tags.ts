import { toTag, WIRE_TYPE } from '#otel/encoding';

const { varint, fixed64, bytes, fixed32 } = WIRE_TYPE;

// The tags of the messages in a batch (opentelemetry-proto 1.11: trace.proto, common.proto, resource.proto,
// trace_service.proto). A tag is the number of a field and the wire type of its value.

/** The only field of TracesData and ExportTraceServiceRequest, which are the same on the wire. */
export const TRACES_DATA = { resourceSpans: toTag(1, bytes) } as const;

export const RESOURCE_SPANS = { resource: toTag(1, bytes), scopeSpans: toTag(2, bytes) } as const;

export const SCOPE_SPANS = {
  scope: toTag(1, bytes),
  span: toTag(2, bytes),
  schemaUrl: toTag(3, bytes),
} as const;

export const RESOURCE = { attributes: toTag(1, bytes), droppedAttributesCount: toTag(2, varint) } as const;

export const SCOPE = { name: toTag(1, bytes), version: toTag(2, bytes) } as const;

export const SPAN = {
  traceId: toTag(1, bytes),
  spanId: toTag(2, bytes),
  traceState: toTag(3, bytes),
  parentSpanId: toTag(4, bytes),
  name: toTag(5, bytes),
  kind: toTag(6, varint),
  startTime: toTag(7, fixed64),
  endTime: toTag(8, fixed64),
  attributes: toTag(9, bytes),
  droppedAttributesCount: toTag(10, varint),
  events: toTag(11, bytes),
  droppedEventsCount: toTag(12, varint),
  links: toTag(13, bytes),
  droppedLinksCount: toTag(14, varint),
  status: toTag(15, bytes),
  /** A tag of two bytes. */
  flags: toTag(16, fixed32),
} as const;

export const EVENT = {
  time: toTag(1, fixed64),
  name: toTag(2, bytes),
  attributes: toTag(3, bytes),
  droppedAttributesCount: toTag(4, varint),
} as const;

export const LINK = {
  traceId: toTag(1, bytes),
  spanId: toTag(2, bytes),
  attributes: toTag(4, bytes),
  droppedAttributesCount: toTag(5, varint),
  flags: toTag(6, fixed32),
} as const;

export const STATUS = { message: toTag(2, bytes), code: toTag(3, varint) } as const;

export const KEY_VALUE = { key: toTag(1, bytes), value: toTag(2, bytes) } as const;

export const ANY_VALUE = {
  string: toTag(1, bytes),
  bool: toTag(2, varint),
  int: toTag(3, varint),
  double: toTag(4, fixed64),
  array: toTag(5, bytes),
  /** The only field of ArrayValue. */
  arrayItem: toTag(1, bytes),
} as const;
