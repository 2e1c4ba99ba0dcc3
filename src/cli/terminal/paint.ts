import { styleText } from 'node:util';
import type { Invocation, TextSink } from '#cli/command';

/** How a text is emphasized. */
export type Style = 'red' | 'yellow' | 'green' | 'dim' | 'bold';

/** Emphasizes a text on a terminal; null leaves it as it is. */
export type Paint = (text: string, style: Style | null) => string;

/** Leaves every text as it is. */
const WITHOUT_PAINT: Paint = (text) => text;

/**
 * Returns the paint for this output: colours on a terminal, unless NO_COLOR is set and not empty (no-color.org) or the
 * terminal is `dumb`; none elsewhere.
 */
export function createPaint({ isTTY }: TextSink, { NO_COLOR = '', TERM }: Invocation['env']): Paint {
  if (isTTY !== true || NO_COLOR !== '' || TERM === 'dumb') return WITHOUT_PAINT;
  return (text, style) => (style === null ? text : styleText(style, text, { validateStream: false }));
}
