/** What the head of a part of a form says of it. */
export interface PartHead {
  readonly name: string;
  readonly isFile: boolean;
  /** Whether its text is ASCII, because its charset could be taken for another than UTF-8. */
  readonly isAscii: boolean;
}

/** RFC 9110 5.6.2. */
const TOKEN = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";

/** A field line (RFC 9112 5): no folded lines, no control characters but tabs. */
const FIELD_LINE = new RegExp(`^(${TOKEN}):[ \t]*([\t -~\x80-\xff]*)$`);

/**
 * A Content-Disposition as clients write it (RFC 7578 4.2): `name`, then `filename`, then `filename*`, which never comes
 * without `filename`. Parsers disagree about everything else: cpp-httplib 0.43 splits at `;` and `=` inside quotation
 * marks, python-multipart 0.0.20 joins `name*0` and `name*1`, and an empty `filename` makes a file for one of them only.
 * The name of a file may hold `=`, and the backslashes of a path, but none before a quotation mark.
 */
const DISPOSITION = new RegExp(
  `^form-data; *name=(?:"([^"\\\\;=\t]*)"|(${TOKEN}))` +
    `(; *filename=(?:"[^";\t]*[^"\\\\;\t]"|${TOKEN})` +
    `(?:; *filename\\*=(?:"[Uu][Tt][Ff]-8''[^"\\\\;\t]+"|[Uu][Tt][Ff]-8''${TOKEN}))?)?$`,
);

/** The types of parts, with a charset that is UTF-8 or, for ASCII, the same. */
const PART_TYPE = /^[^;]*(?:;[ \t]*charset="?(?:utf-8|(us-ascii|iso-8859-1))"?)?[ \t]*$/i;

/** The values of Content-Transfer-Encoding that encode nothing. Some parsers decode the others (RFC 7578 4.7). */
const PLAIN_ENCODING = /^(?:7bit|8bit|binary)$/i;

/**
 * Reads the head of a part: its field lines in latin-1, without the empty line at their end. Returns null if parsers
 * could disagree about what it says: another name here than at the replica would send the request to a replica that the
 * client may not use.
 */
export function parsePartHead(text: string): PartHead | null {
  let disposition: RegExpExecArray | null = null;
  let isAscii = false;
  let isPlain = true;
  for (const line of text.split('\r\n')) {
    const [, name, value] = FIELD_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) return null;
    switch (name.toLowerCase()) {
      case 'content-disposition':
        if (disposition !== null) return null;
        disposition = DISPOSITION.exec(value);
        if (disposition === null) return null;
        break;
      case 'content-type': {
        const type = PART_TYPE.exec(value);
        if (type === null) isPlain = false;
        else if (type[1] !== undefined) isAscii = true;
        break;
      }
      case 'content-transfer-encoding':
        if (!PLAIN_ENCODING.test(value)) return null;
        break;
    }
  }
  if (disposition === null) return null;
  const [, quoted, token, filename] = disposition;
  const isFile = filename !== undefined;
  // The type of a file may have parameters of its own, such as `codecs`.
  return isPlain || isFile ? { name: quoted ?? token ?? '', isFile, isAscii } : null;
}

/**
 * The Content-Type of a form. The boundary is that of RFC 2046 5.1.1, but for `=`, at which cpp-httplib 0.43 cuts it. With
 * `charset`, Starlette would read the names of the parts in it.
 */
const FORM_TYPE =
  /^multipart\/form-data; *boundary=(?:"([0-9A-Za-z'()+_,./:? -]{0,69}[0-9A-Za-z'()+_,./:?-])"|([0-9A-Za-z'+_.-]{1,70}))$/;

/** The boundary in the Content-Type of a form; null if it has anything else, or none that can be used. */
export function parseBoundary(contentType: string | undefined): string | null {
  const [, quoted, token] = FORM_TYPE.exec(contentType ?? '') ?? [];
  return quoted ?? token ?? null;
}
