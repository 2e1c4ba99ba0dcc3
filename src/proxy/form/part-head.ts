/** What the head of a part of a form says of it. */
export interface PartHead {
  readonly name: string;
  readonly isFile: boolean;
}

/** A field line (RFC 9112 5): no folded lines, no control characters but tabs. */
const FIELD_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t -~\x80-\xff]*)$/;

/**
 * A parameter of Content-Disposition, with the semicolon before it. A quoted value may hold backslashes, as in a path of
 * Windows, but none before a quotation mark: there parsers disagree about where the value ends.
 */
const PARAMETER = /;[ \t]*([!#$%&'*+.^_`|~0-9A-Za-z-]+)=(?:"([^"]*)"|([!#$%&'*+.^_`|~0-9A-Za-z-]+))[ \t]*/y;

/**
 * Reads the head of a part: its field lines in latin-1, without the empty line at their end. Returns null if parsers
 * could disagree about what it says: another name here than at the replica would send the request to a replica that the
 * client may not use.
 */
export function parsePartHead(text: string): PartHead | null {
  let disposition: string | null = null;
  for (const line of text.split('\r\n')) {
    const [, name, value] = FIELD_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined) return null;
    if (name.toLowerCase() !== 'content-disposition') continue;
    if (disposition !== null) return null;
    disposition = value;
  }
  return disposition === null ? null : parseDisposition(disposition);
}

/** Reads a Content-Disposition (RFC 7578 4.2). */
function parseDisposition(value: string): PartHead | null {
  const type = /^form-data[ \t]*/i.exec(value);
  if (type === null) return null;
  const parameters = new Map<string, string>();
  PARAMETER.lastIndex = type[0].length;
  while (PARAMETER.lastIndex < value.length) {
    const [, name, quoted, token] = PARAMETER.exec(value) ?? [];
    if (name === undefined) return null;
    const key = name.toLowerCase();
    if (parameters.has(key) || quoted?.endsWith('\\')) return null;
    parameters.set(key, quoted ?? token ?? '');
  }
  const name = parameters.get('name');
  // RFC 7578 4.2 forbids `name*`; some parsers read it.
  if (name === undefined || name.includes('\\') || parameters.has('name*')) return null;
  return { name, isFile: parameters.has('filename') || parameters.has('filename*') };
}

/** RFC 2046 5.1.1. */
const BOUNDARY = /^[0-9A-Za-z'()+_,./:=? -]{0,69}[0-9A-Za-z'()+_,./:=?-]$/;

/** The boundary in the Content-Type of a form; null if it is another type, or has no boundary that can be used. */
export function parseBoundary(contentType: string | undefined): string | null {
  const type = /^multipart\/form-data[ \t]*/i.exec(contentType ?? '');
  if (contentType === undefined || type === null) return null;
  let boundary: string | null = null;
  PARAMETER.lastIndex = type[0].length;
  while (PARAMETER.lastIndex < contentType.length) {
    const [, name, quoted, token] = PARAMETER.exec(contentType) ?? [];
    if (name === undefined) return null;
    if (name.toLowerCase() !== 'boundary') continue;
    if (boundary !== null) return null;
    boundary = quoted ?? token ?? '';
  }
  return boundary !== null && BOUNDARY.test(boundary) ? boundary : null;
}
