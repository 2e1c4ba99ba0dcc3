import { MAX_NAME_CHARS } from './record-bounds.ts';

/**
 * What in a text could do more than be read: control characters, which move a terminal's cursor (U+009B begins a
 * sequence as ESC [ does), those that turn the direction of writing, and those that end a line.
 */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/** A text from outside without what a terminal or a page would obey, each replaced by `replacement`. */
export function withoutControls(text: string, replacement = ''): string {
  return text.replace(CONTROLS, replacement);
}

/** What nearly every name is. Asking for it first costs a tenth of looking for controls. */
const PLAIN = /^[ -~]*$/;

/** A name as it is shown and exported: harmless, and at most 256 UTF-16 units, never half a character. */
export function toShownName(name: string, maxChars = MAX_NAME_CHARS): string {
  if (name.length <= maxChars && PLAIN.test(name)) return name;
  const harmless = withoutControls(name);
  return (harmless.length > maxChars ? harmless.slice(0, maxChars) : harmless).toWellFormed();
}
