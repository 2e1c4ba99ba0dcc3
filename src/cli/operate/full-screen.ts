import { stripVTControlCharacters } from 'node:util';
import type { ByteSource, TextSink } from '#cli/command';
import { sizeOf, widthOf } from '#cli/terminal';

/** The whole screen of a terminal. Disposing it restores what was there before. */
export interface FullScreen extends Disposable {
  /** Replaces what the screen shows by the text, cut to the terminal's current size. It may be painted. */
  show(text: string): void;
}

/** xterm's escape sequences, which all common terminals know; the alternate screen keeps the previous content. */
const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_REST_OF_LINE = '\u001b[K';
const CLEAR_REST = '\u001b[J';

/** Switches the terminal to its alternate screen. */
export function enterFullScreen(terminal: TextSink): FullScreen {
  terminal.write(ENTER);
  return {
    show(text) {
      const { columns, rows } = sizeOf(terminal);
      const lines = text.trimEnd().split('\n').slice(0, rows);
      const cut = lines.map((line) => cutPainted(line, columns) + CLEAR_REST_OF_LINE);
      terminal.write(HOME + cut.join('\r\n') + CLEAR_REST);
    },
    [Symbol.dispose]: () => {
      terminal.write(LEAVE);
    },
  };
}

/** What a colour sequence begins and ends with, and the one that ends all colours. */
const COLOUR_BEGIN = '\u001b[';
const COLOUR_END = 'm';
const NO_COLOUR = `${COLOUR_BEGIN}0m`;

/** Cuts a line to this many characters. Colour sequences have no width. */
function cutPainted(line: string, width: number): string {
  // Characters of some scripts take other widths than they have units.
  if (widthOf(stripVTControlCharacters(line)) <= width) return line;
  const [first = '', ...painted] = line.split(COLOUR_BEGIN);
  let cut = first.slice(0, width);
  let left = width - cut.length;
  for (const part of painted) {
    if (left === 0) return cut + NO_COLOUR;
    const start = part.indexOf(COLOUR_END) + 1;
    const text = part.slice(start, start + left);
    cut += COLOUR_BEGIN + part.slice(0, start) + text;
    left -= text.length;
  }
  return cut;
}

/** In raw mode Ctrl-C is a key and sends no signal. */
const CTRL_C = '\u0003';

/**
 * Reads keys and passes each to `onKey`. Resolves when the user presses q or Ctrl-C, or closes the terminal; never if
 * there is no keyboard. What begins with an escape, such as an arrow key, is ignored.
 */
export async function readKeys(keyboard: ByteSource, onKey: (key: string) => void): Promise<void> {
  if (keyboard.setRawMode === undefined) return new Promise(() => undefined);
  keyboard.setRawMode(true);
  try {
    for await (const bytes of keyboard) {
      const keys = Buffer.from(bytes).toString('latin1');
      if (keys.startsWith('\u001b')) continue;
      for (const key of keys) {
        if (key === 'q' || key === CTRL_C) return;
        onKey(key);
      }
    }
  } catch {
    // The terminal was closed.
  } finally {
    keyboard.setRawMode(false);
  }
}
