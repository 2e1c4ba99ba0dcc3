/** The longest text of a request that an answer repeats. */
const MAX_SHOWN_CHARS = 128;
/** What has no place in a line of text, or changes how others are shown: controls, format characters, half surrogates. */
const UNPRINTABLE = /[\p{C}\p{Zl}\p{Zp}]/gu;

/** A path or name from a request, in quotes, as an answer may repeat it: a line of printable characters, cut if it is long. */
export function toShownText(text: string): string {
  const begin = text.slice(0, MAX_SHOWN_CHARS).replace(UNPRINTABLE, '\u{FFFD}').replaceAll('`', "'");
  return `\`${begin}${text.length > MAX_SHOWN_CHARS ? '…' : ''}\``;
}
