import { HTAB, isToken, SPACE } from './characters.ts';
import { HttpError } from './http-error.ts';

/** What the Connection fields of a message say. */
export interface ConnectionFacts {
  readonly closes: boolean;
  readonly keeps: boolean;
  /** Lower-case names besides close and keep-alive, which may be among them; null when there are none. */
  readonly options: ReadonlySet<string> | null;
}

const UNSPECIFIED: ConnectionFacts = { closes: false, keeps: false, options: null };
const KEEPS: ConnectionFacts = { closes: false, keeps: true, options: null };
const CLOSES: ConnectionFacts = { closes: true, keeps: false, options: null };

/** Whether the sender keeps the connection (RFC 9112 9.3). */
export function isKept({ closes, keeps }: ConnectionFacts, minorVersion: 0 | 1): boolean {
  return !closes && (minorVersion === 1 || keeps);
}

/**
 * Parses the options of all Connection fields (RFC 9110 7.6.1), joined with commas; null: there is none. List members
 * may be empty (5.6.1.2). Throws HttpError.
 */
export function readConnection(value: string | null): ConnectionFacts {
  if (value === null) return UNSPECIFIED;
  const lower = value.toLowerCase();
  if (lower === 'keep-alive') return KEEPS;
  if (lower === 'close') return CLOSES;
  const options = new Set<string>();
  for (const member of lower.split(',')) {
    const option = withoutBlanks(member);
    if (option === '') continue;
    if (!isToken(option)) throw new HttpError('malformed');
    options.add(option);
  }
  const closes = options.has('close');
  const keeps = options.has('keep-alive');
  const namedCount = options.size - Number(closes) - Number(keeps);
  return { closes, keeps, options: namedCount === 0 ? null : options };
}

/** Removes SP and HTAB only. `trim` would also remove other white space, such as a no-break space. */
function withoutBlanks(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && isBlankAt(text, start)) start++;
  while (end > start && isBlankAt(text, end - 1)) end--;
  return text.slice(start, end);
}

function isBlankAt(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code === SPACE || code === HTAB;
}
