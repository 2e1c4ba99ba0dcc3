import { COLON, CR, HTAB, LF, SPACE, TEXT_BYTES, TOKEN_BYTES } from './characters.ts';
import { Fields } from './fields.ts';
import { HttpError } from './http-error.ts';

/** The fields that decide where a message ends and whether it is valid. Their values are also kept by name. */
type FieldRole = 'host' | 'content-length' | 'transfer-encoding' | 'connection' | 'expect';

interface KnownName {
  readonly lowerName: string;
  readonly role: FieldRole | null;
}

const ROLES: readonly FieldRole[] = ['host', 'content-length', 'transfer-encoding', 'connection', 'expect'];

const COMMON_NAMES = [
  'Accept',
  'Accept-Encoding',
  'Accept-Language',
  'Authorization',
  'Cache-Control',
  'Content-Encoding',
  'Content-Type',
  'Cookie',
  'Date',
  'ETag',
  'Keep-Alive',
  'OpenAI-Organization',
  'OpenAI-Processing-Ms',
  'OpenAI-Version',
  'Origin',
  'Referer',
  'Retry-After',
  'Server',
  'TE',
  'Traceparent',
  'Tracestate',
  'Trailer',
  'Upgrade',
  'User-Agent',
  'Vary',
  'X-Forwarded-For',
  'X-Forwarded-Host',
  'X-Forwarded-Proto',
  'X-Request-Id',
  'X-Stainless-Arch',
  'X-Stainless-Async',
  'X-Stainless-Lang',
  'X-Stainless-OS',
  'X-Stainless-Package-Version',
  'X-Stainless-Read-Timeout',
  'X-Stainless-Retry-Count',
  'X-Stainless-Runtime',
  'X-Stainless-Runtime-Version',
  'Host',
  'Content-Length',
  'Transfer-Encoding',
  'Connection',
  'Expect',
];

/** The lower-case names of common fields by their usual spellings. It never grows. */
const KNOWN_NAMES: ReadonlyMap<string, KnownName> = new Map(
  COMMON_NAMES.flatMap((name): [string, KnownName][] => {
    const lowerName = name.toLowerCase();
    const known = { lowerName, role: ROLES.find((role) => role === lowerName) ?? null };
    return [
      [name, known],
      [lowerName, known],
    ];
  }),
);

/** The field lines of a head or a trailer section, and the values of those with a role in framing. */
export class FieldLines {
  readonly fields = new Fields();
  /** How many Host fields there are, and the value of the last one. */
  hostCount = 0;
  host = '';
  /** The value of the only field with that name; null if there is none. */
  contentLength: string | null = null;
  transferEncoding: string | null = null;
  /** The values of all Connection fields, joined by commas; Expect likewise. */
  connection: string | null = null;
  expect: string | null = null;

  /**
   * Reads the field lines in `bytes[start, end)`, which ends with a CRLF (RFC 9112 5). `text` holds the same bytes as
   * latin-1 and begins at `bytes[textStart]`.
   *
   * Throws HttpError('malformed') for anything else, such as a folded line, a space before the colon, a control byte,
   * or a second Content-Length or Transfer-Encoding.
   */
  read(bytes: Buffer, start: number, end: number, text: string, textStart: number): void {
    let at = start;
    while (at < end) {
      const nameStart = at;
      while (TOKEN_BYTES[bytes[at] as number] === 1) at++;
      if (at === nameStart || bytes[at] !== COLON) throw new HttpError('malformed');
      const name = text.slice(nameStart - textStart, at - textStart);
      at++;
      while (isBlank(bytes[at] as number)) at++;
      const valueStart = at;
      while (TEXT_BYTES[bytes[at] as number] === 1) at++;
      if (bytes[at] !== CR || bytes[at + 1] !== LF) throw new HttpError('malformed');
      let valueEnd = at;
      while (valueEnd > valueStart && isBlank(bytes[valueEnd - 1] as number)) valueEnd--;
      const role = this.#add(name, text.slice(valueStart - textStart, valueEnd - textStart));
      // llhttp treats `chunked` followed by a tab as another coding. Two readers of such a message could disagree about
      // its end.
      if (role === 'transfer-encoding' && text.slice(valueEnd - textStart, at - textStart).includes('\t')) {
        throw new HttpError('malformed');
      }
      at += 2;
    }
  }

  #add(name: string, value: string): FieldRole | null {
    let known = KNOWN_NAMES.get(name);
    if (known === undefined) {
      const lowerName = name.toLowerCase();
      known = KNOWN_NAMES.get(lowerName);
      if (known === undefined) {
        this.fields.add(name, lowerName, value);
        return null;
      }
    }
    this.fields.add(name, known.lowerName, value);
    if (known.role !== null) this.#keepValue(known.role, value);
    return known.role;
  }

  #keepValue(role: FieldRole, value: string): void {
    switch (role) {
      case 'host':
        this.hostCount++;
        this.host = value;
        break;
      case 'content-length':
        this.contentLength = requireSingle(this.contentLength, value);
        break;
      case 'transfer-encoding':
        this.transferEncoding = requireSingle(this.transferEncoding, value);
        break;
      case 'connection':
        this.connection = this.connection === null ? value : `${this.connection},${value}`;
        break;
      case 'expect':
        this.expect = this.expect === null ? value : `${this.expect},${value}`;
        break;
    }
  }
}

function isBlank(byte: number): boolean {
  return byte === SPACE || byte === HTAB;
}

function requireSingle(earlier: string | null, value: string): string {
  if (earlier !== null) throw new HttpError('malformed');
  return value;
}
