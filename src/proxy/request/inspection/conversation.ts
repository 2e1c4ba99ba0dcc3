import { type JsonCursor, readMemberOf, readText } from '#json';
import { type NameDoubtsReader, readCheckedText } from './member-names.ts';

/** For the name of a conversation or response as it is written. A record has 256 characters of it. */
export const MAX_NAME_BYTES = 1024;

/**
 * Where a body may name its conversation, and the member of an object there that has the name: OpenAI's `conversation`;
 * `metadata`, which clients fill; the key by which an engine groups prompts with the same beginning. The first counts,
 * unless a header names it (../../record/recorded-fields.ts).
 */
const CONVERSATION_KEYS = { conversation: 'id', metadata: 'session_id', prompt_cache_key: null } as const;

type ConversationMember = keyof typeof CONVERSATION_KEYS;

/** Reads what a body calls its conversation. */
export class ConversationReader {
  readonly #names: { [Member in ConversationMember]?: string | undefined } = {};
  readonly #doubts: NameDoubtsReader;

  constructor(doubts: NameDoubtsReader) {
    this.#doubts = doubts;
  }

  /** The name; undefined if there is none. */
  get name(): string | undefined {
    const { conversation, metadata, prompt_cache_key } = this.#names;
    return conversation || metadata || prompt_cache_key || undefined;
  }

  /** Reads the value of one of the members. Of duplicate members the last one counts. */
  read(cursor: JsonCursor, member: ConversationMember): void {
    this.#names[member] = readName(cursor, member, this.#doubts);
  }
}

function readName(
  cursor: JsonCursor,
  member: ConversationMember,
  doubts: NameDoubtsReader,
): string | undefined {
  if (cursor.peek() !== 'object') {
    const text = readText(cursor, MAX_NAME_BYTES);
    return member === 'metadata' ? undefined : text;
  }
  const key = CONVERSATION_KEYS[member];
  // The names in metadata are the client's own: no engine reads them.
  if (member === 'metadata') {
    return readMemberOf(cursor, CONVERSATION_KEYS[member], (value) => readText(value, MAX_NAME_BYTES));
  }
  if (key !== null) return readCheckedText(cursor, key, MAX_NAME_BYTES, doubts);
  cursor.skip();
  return undefined;
}
