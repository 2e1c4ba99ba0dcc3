import { toShownName } from '#otel/base';
import { CONTENT_TYPES } from '#otel/collector';
import { type ProtobufReader, readMessage, toTag, WIRE_TYPE } from '#otel/encoding';
import { parseJson } from '#otel/otlp-json';

/** The collector's message is logged, but not all of a long one. */
const MAX_MESSAGE_CHARS = 256;

/** The body of a collector's answer, and its Content-Type. */
export interface AnswerBody {
  readonly type: string;
  readonly bytes: Buffer;
}

/** How many spans were rejected, and why. */
export interface PartialSuccess {
  readonly rejectedCount: number;
  readonly message: string | undefined;
}

// The tags of trace_service.proto (ExportTraceServiceResponse, ExportTracePartialSuccess) and google/rpc/status.proto.
const RESPONSE = { partialSuccess: toTag(1, WIRE_TYPE.bytes) } as const;
const PARTIAL_SUCCESS = {
  rejectedSpans: toTag(1, WIRE_TYPE.varint),
  errorMessage: toTag(2, WIRE_TYPE.bytes),
} as const;
const RPC_STATUS = { message: toTag(2, WIRE_TYPE.bytes) } as const;

/**
 * Parses an ExportTraceServiceResponse, in protobuf if its type says so, otherwise in JSON. Any other body means that all
 * spans were accepted.
 */
export function toPartialSuccess(body: AnswerBody): PartialSuccess {
  const { rejected, message } = isProtobuf(body)
    ? readPartialSuccess(body.bytes)
    : parsePartialSuccess(body.bytes);
  return { rejectedCount: toCount(rejected), message: toMessage(message) };
}

/** 0 for what is no number: an object would make Number() throw, and a list of one is no number either. */
function toCount(value: unknown): number {
  if (typeof value === 'object') return 0;
  const count = Math.trunc(Number(value));
  return Number.isSafeInteger(count) ? count : 0;
}

/** The message of a google.rpc.Status, which is the body of a collector's failure. */
export function toCollectorMessage(body: AnswerBody): string | undefined {
  return toMessage(
    isProtobuf(body) ? readStatusMessage(body.bytes) : member(parseJson(body.bytes.toString()), 'message'),
  );
}

function isProtobuf({ type }: AnswerBody): boolean {
  return type.split(';', 1)[0]?.trim().toLowerCase() === CONTENT_TYPES['http/protobuf'];
}

interface RawPartialSuccess {
  readonly rejected: unknown;
  readonly message: unknown;
}

const ALL_ACCEPTED: RawPartialSuccess = { rejected: 0, message: undefined };

function parsePartialSuccess(bytes: Buffer): RawPartialSuccess {
  const partialSuccess = member(parseJson(bytes.toString()), 'partialSuccess');
  // An int64 is a string in JSON, but decoders must also accept a number.
  return {
    rejected: member(partialSuccess, 'rejectedSpans') ?? 0,
    message: member(partialSuccess, 'errorMessage'),
  };
}

function readPartialSuccess(bytes: Buffer): RawPartialSuccess {
  const found = readMessage(bytes, (reader, end) => {
    let result = ALL_ACCEPTED;
    while (reader.next(end)) {
      if (reader.tag === RESPONSE.partialSuccess) result = readRejected(reader, reader.message());
      else reader.skip();
    }
    return result;
  });
  return found ?? ALL_ACCEPTED;
}

function readRejected(reader: ProtobufReader, end: number): RawPartialSuccess {
  let rejected: number | bigint = 0;
  let message: string | undefined;
  while (reader.next(end)) {
    if (reader.tag === PARTIAL_SUCCESS.rejectedSpans) rejected = reader.int64();
    else if (reader.tag === PARTIAL_SUCCESS.errorMessage) message = reader.text();
    else reader.skip();
  }
  return { rejected, message };
}

function readStatusMessage(bytes: Buffer): string | null | undefined {
  return readMessage(bytes, (reader, end) => {
    let message: string | undefined;
    while (reader.next(end)) {
      if (reader.tag === RPC_STATUS.message) message = reader.text();
      else reader.skip();
    }
    return message;
  });
}

function toMessage(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? toShownName(value, MAX_MESSAGE_CHARS) : undefined;
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.entries(value).find(([key]) => key === name)?.[1];
}
