import { type JsonCursor, readText } from '#json';
import type { CurrentEventData } from '../../response/events/sse.ts';
import type { ResponseIdentity } from '../../response/events/stream-chunk.ts';

/*
 * Reads members that answers of several APIs have. What an engine says need not be what its API defines: a value of
 * another type says nothing.
 */

/** Longer names are not kept: no engine has such, and a record would cut them. */
const MAX_NAME_BYTES = 1024;

const NO_IDENTITY: ResponseIdentity = { id: null, model: null };

/** The value if it is a string; null, and skipped, if it is anything else or longer than 1 KiB. */
export function readName(json: JsonCursor): string | null {
  return readText(json, MAX_NAME_BYTES) ?? null;
}

/** Reads `id` or `model` into the facts of an answer. */
export function readIdentityMember(
  json: JsonCursor,
  key: 'id' | 'model',
  facts: { identity: ResponseIdentity | null },
): void {
  const identity: ResponseIdentity = { ...(facts.identity ?? NO_IDENTITY), [key]: readName(json) };
  facts.identity = identity.id === null && identity.model === null ? null : identity;
}

/** The `id` and `model` among the members that a scanner has captured; null if there is neither. */
export function identityOf(captured: ReadonlyMap<string, Buffer>, json: JsonCursor): ResponseIdentity | null {
  const facts = { identity: null };
  for (const key of ['id', 'model'] as const) {
    readCaptured(captured, key, json, () => readIdentityMember(json, key, facts));
  }
  return facts.identity;
}

/**
 * Reads the members of an event into a draft, with the cursor at each value. Returns whether the event is a JSON object;
 * anything else is no error.
 */
export function readEventMembers<Draft>(
  { bytes, start, end }: CurrentEventData,
  json: JsonCursor,
  draft: Draft,
  readMember: (json: JsonCursor, key: string, draft: Draft) => void,
): boolean {
  try {
    json.reset(bytes, start, end);
    if (json.peek() !== 'object') return false;
    json.beginObject();
    while (json.nextKey()) readMember(json, json.key(), draft);
    json.end();
    return true;
  } catch {
    return false;
  }
}

/** Reads a captured member, if there is one, with the cursor at its value. One that is not JSON says nothing. */
export function readCaptured(
  captured: ReadonlyMap<string, Buffer>,
  key: string,
  json: JsonCursor,
  read: () => void,
): void {
  const raw = captured.get(key);
  if (raw === undefined) return;
  try {
    json.reset(raw, 0, raw.length);
    read();
  } catch {
    // Not JSON.
  }
}
