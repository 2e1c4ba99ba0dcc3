import { type JsonCursor, readText } from '#json';

/**
 * The members of one request body, or of one object in it, by whose names readers of JSON could disagree. Engines in Go
 * take `"Model"` for `model`, since encoding/json does not tell upper case from lower case; and of a member that comes
 * twice some readers take the first, others put both together.
 */
export interface NameDoubts {
  /** A member of those that the gateway reads; another one differs from it only in case. Null: there is none. */
  readonly lookalike: string | null;
  /** One that the gateway reads, and that comes more than once in its object. Null: there is none. */
  readonly repeated: string | null;
}

/** Names of the APIs that the gateway speaks are in lower case, with digits and low lines. */
const UNUSUAL = /[^a-z0-9_]/;

/**
 * The one of these names that the key of a member differs from only in case; null: none. All names are in lower case, and
 * the key is none of them. Unicode has further characters that stand for letters of ASCII in another case, such as the
 * long s, the sign for kelvin and the i without a dot.
 */
export function lookalikeOf(key: string, names: Iterable<string>): string | null {
  if (!UNUSUAL.test(key)) return null;
  const folded = key.toUpperCase().toLowerCase();
  for (const name of names) if (name === folded) return name;
  return null;
}

/** Notes the doubts of one body as it is read. Of several of a kind it keeps the first. */
export class NameDoubtsReader implements NameDoubts {
  lookalike: string | null = null;
  repeated: string | null = null;

  /** A member that the gateway does not read, beside some that it does. */
  noteUnread(key: string, names: Iterable<string>): void {
    this.lookalike ??= lookalikeOf(key, names);
  }

  /** A member that the gateway reads. `isRepeated`: its object had it before. */
  noteRead(key: string, isRepeated: boolean): void {
    if (isRepeated) this.repeated ??= key;
  }
}

/**
 * Reads one text of the object at the cursor, and notes doubts about its name; undefined if there is none. Of duplicate
 * members the last one counts.
 */
export function readCheckedText(
  cursor: JsonCursor,
  name: string,
  maxBytes: number,
  doubts: NameDoubtsReader,
): string | undefined {
  if (cursor.peek() !== 'object') {
    cursor.skip();
    return undefined;
  }
  let text: string | undefined;
  let isThere = false;
  cursor.beginObject();
  while (cursor.nextKey()) {
    const key = cursor.key();
    if (key === name) {
      doubts.noteRead(key, isThere);
      isThere = true;
      text = readText(cursor, maxBytes);
    } else {
      doubts.noteUnread(key, [name]);
      cursor.skip();
    }
  }
  return text;
}

/** What is known of who sends a request, and of who may get it. */
export interface Readers {
  /** Whether its client may use only some models, or only so much. */
  readonly isRestricted: boolean;
  /** Whether a replica that may get it could take a name in another case for its own. */
  readonly mayFoldCase: boolean;
}

/** Which doubt about a body a request is refused for. */
export interface RefusedName {
  readonly member: string;
  readonly doubt: keyof NameDoubts;
}

/**
 * Why a request must be refused: what the gateway reads in its body, and an engine might not. Null: it may go on. Where
 * neither a client could gain by it nor an engine read another name, bodies are not the gateway's business.
 */
export function findRefusedName(
  { lookalike, repeated }: NameDoubts,
  { isRestricted, mayFoldCase }: Readers,
): RefusedName | null {
  if (lookalike !== null && (isRestricted || mayFoldCase)) return { member: lookalike, doubt: 'lookalike' };
  return repeated !== null && isRestricted ? { member: repeated, doubt: 'repeated' } : null;
}
