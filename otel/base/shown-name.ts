/** The most UTF-16 units of a name from outside. Longer names are cut. */
const MAX_NAME_CHARS = 256;

/**
 * Characters with an effect on a terminal or page: control characters, which move a terminal's cursor (U+009B begins a
 * sequence like ESC [), bidirectional controls, and line and paragraph separators.
 */
const CONTROLS = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}]/gu;

/** Replaces the characters in a text from outside that have an effect on a terminal or page. */
export function withoutControls(text: string, replacement = ''): string {
  return text.replace(CONTROLS, replacement);
}

/** Matches nearly every name, at a tenth of the cost of searching for controls. */
const PLAIN = /^[ -~]*$/;

/** A name to show and export: without controls and lone surrogates, cut to `maxChars` UTF-16 units. */
export function toShownName(name: string, maxChars = MAX_NAME_CHARS): string {
  if (name.length <= maxChars && PLAIN.test(name)) return name;
  const harmless = withoutControls(name);
  return (harmless.length > maxChars ? harmless.slice(0, maxChars) : harmless).toWellFormed();
}
