import type { ByteSource, TextSink } from '../command-line/command.ts';

/** The whole screen of a terminal. Disposing it restores what was there before. */
export interface FullScreen extends Disposable {
  /** Replaces what the screen shows by the text, cut to the terminal's current size. */
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
      const { columns = 80, rows = 24 } = terminal;
      const lines = text.trimEnd().split('\n').slice(0, rows);
      const cut = lines.map((line) => line.slice(0, columns) + CLEAR_REST_OF_LINE);
      terminal.write(HOME + cut.join('\r\n') + CLEAR_REST);
    },
    [Symbol.dispose]: () => {
      terminal.write(LEAVE);
    },
  };
}

/** In raw mode Ctrl-C is a key and sends no signal. */
const CTRL_C = '\u0003';

/** Resolves when the user presses q or Ctrl-C, or closes the terminal; never if there is no keyboard. */
export async function untilQuit(keyboard: ByteSource): Promise<void> {
  if (keyboard.setRawMode === undefined) return new Promise(() => undefined);
  keyboard.setRawMode(true);
  try {
    for await (const keys of keyboard) {
      const text = Buffer.from(keys).toString('latin1');
      if (text.includes('q') || text.includes(CTRL_C)) return;
    }
  } catch {
    // The terminal was closed.
  } finally {
    keyboard.setRawMode(false);
  }
}
