import type { SpanContext, TraceState } from '@opentelemetry/api';
import { parseTraceParent } from '@opentelemetry/core';

/** The trace context in the header of a request, as it came. */
export interface IncomingContext {
  /** The value of `traceparent`; several fields are joined by commas. */
  readonly traceparent: string;
  /** The value of `tracestate`, likewise. It has no meaning in a link. */
  readonly tracestate: string | undefined;
  /** Whether the request's span may become a child of the client's. */
  readonly isTrusted: boolean;
}

/** A W3C trace context as it is sent upstream. */
export interface TraceContextFields {
  readonly traceparent: string;
  /** Undefined: there is none. */
  readonly tracestate: string | undefined;
}

/** "Vendors SHOULD propagate at least 512 characters of a combined header" (W3C Trace Context, "tracestate Limits"). */
const MAX_TRACESTATE_CHARS = 512;
/** More are not valid ("list"). */
const MAX_MEMBERS = 32;
/** "Entries larger than 128 characters long SHOULD be removed first" ("tracestate Limits"). */
const LARGE_MEMBER_CHARS = 128;

/** A version that is not known, 255 or 0 with more behind it, is not valid; nor is an id that is all zero. */
export function parseTraceparent(text: string): SpanContext | null {
  // Duplicates are joined by commas, and are not valid. In a future version, one could look like a further part.
  if (text.includes(',')) return null;
  const context = parseTraceParent(text);
  return context === null ? null : { ...context, isRemote: true };
}

/** A key of W3C Trace Context level 2, which includes those of level 1. */
const KEY = /^[a-z0-9][a-z0-9_\-*/@]{0,255}$/;
/** Printable ASCII without comma and equals sign. It does not end in a space. */
const VALUE = /^[ !-+\--<>-~]{0,255}[!-+\--<>-~]$/;

/**
 * The valid `tracestate` that a header's value stands for: without empty members and spaces between them, and of
 * duplicate keys the first. Undefined if there is none: one member that is not valid makes all of them invalid, and so
 * do more than 32. Of a longer one than 512 characters, members are left out: large ones first, then the last.
 */
export function parseTracestate(text: string): string | undefined {
  const members = new Map<string, string>();
  let count = 0;
  for (const part of text.split(',')) {
    const member = part.replace(/^[ \t]+|[ \t]+$/g, '');
    if (member === '') continue;
    const equals = member.indexOf('=');
    const key = member.slice(0, Math.max(equals, 0));
    if (++count > MAX_MEMBERS || !KEY.test(key) || !VALUE.test(member.slice(equals + 1))) return undefined;
    if (!members.has(key)) members.set(key, member);
  }
  return members.size === 0 ? undefined : shorten([...members.values()]);
}

function shorten(members: readonly string[]): string | undefined {
  let kept = members;
  if (kept.join().length > MAX_TRACESTATE_CHARS) {
    kept = members.filter(({ length }) => length <= LARGE_MEMBER_CHARS);
  }
  while (kept.join().length > MAX_TRACESTATE_CHARS) kept = kept.slice(0, -1);
  return kept.length === 0 ? undefined : kept.join();
}

/** A tracestate in the API's form, which does not change. `text`: a valid one. */
export function toTraceState(text: string): TraceState {
  const state: TraceState = {
    get: (key) =>
      text
        .split(',')
        .find((member) => member.startsWith(`${key}=`))
        ?.slice(key.length + 1),
    set: () => state,
    unset: () => state,
    serialize: () => text,
  };
  return state;
}
