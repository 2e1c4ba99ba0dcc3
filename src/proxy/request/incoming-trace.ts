import type { Fields } from '#wire/message';

/** The trace context of a request; undefined if it has none. `isContinued`: whether its trace may go on here (#gateway, proxy-policy.ts). */
export function readIncomingTrace(fields: Fields, isContinued: boolean) {
  const traceparent = fields.get('traceparent');
  if (traceparent === undefined) return undefined;
  const tracestate = isContinued ? fields.get('tracestate') : undefined;
  return { traceparent, tracestate, isTrusted: isContinued };
}
