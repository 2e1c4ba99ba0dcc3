import { toShownName } from '../encode/shown-name.ts';

/** A collector's explanation is logged; one that goes on for ever is not. */
const MAX_MESSAGE_CHARS = 256;

/**
 * Reads an ExportTraceServiceResponse (opentelemetry-proto, trace_service.proto) as JSON: how many spans were
 * refused, and why. A body that is none, or not JSON, means that all were taken.
 */
export function toPartialSuccess(body: Buffer): {
  readonly rejectedCount: number;
  readonly message: string | undefined;
} {
  const partialSuccess = member(parseJson(body), 'partialSuccess');
  // An int64: a string in JSON, though decoders must take a number too.
  const rejectedCount = Math.trunc(Number(member(partialSuccess, 'rejectedSpans') ?? 0));
  return {
    rejectedCount: Number.isSafeInteger(rejectedCount) ? rejectedCount : 0,
    message: toMessage(member(partialSuccess, 'errorMessage')),
  };
}

/** The message of a google.rpc.Status, which is what a collector answers when it says no. */
export function toCollectorMessage(body: Buffer | null): string | undefined {
  return body === null ? undefined : toMessage(member(parseJson(body), 'message'));
}

function toMessage(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? toShownName(value, MAX_MESSAGE_CHARS) : undefined;
}

function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return undefined;
  }
}

function member(value: unknown, name: string): unknown {
  if (typeof value !== 'object' || value === null) return undefined;
  return Object.entries(value).find(([key]) => key === name)?.[1];
}
