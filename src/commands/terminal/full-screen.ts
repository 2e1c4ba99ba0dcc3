import type { ByteSource, TextSink } from '../command-line/command.ts';

/** A terminal's whole screen, on loan. */
export interface Screen extends Disposable {
  /** Puts a picture in place of the one before, cut to the size that the terminal has now. */
  show(text: string): void;
}

/** Escape sequences of xterm that every terminal in use knows; the alternate screen keeps what was there before. */
const TAKE = '\u001b[?1049h\u001b[?25l';
const GIVE_BACK = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_REST_OF_LINE = '\u001b[K';
const CLEAR_REST = '\u001b[J';

/** Takes the screen; disposing gives it back as it was. */
export function takeScreen(terminal: TextSink): Screen {
  terminal.write(TAKE);
  return {
    show(text) {
      const { columns = 80, rows = 24 } = terminal;
      const lines = text.trimEnd().split('\n').slice(0, rows);
      const cut = lines.map((line) => line.slice(0, columns) + CLEAR_REST_OF_LINE);
      terminal.write(HOME + cut.join('\r\n') + CLEAR_REST);
    },
    [Symbol.dispose]: () => {
      terminal.write(GIVE_BACK);
    },
  };
}

/** Ctrl-C as a key: in raw mode it makes no signal. */
const CTRL_C = '\u0003';

/** Resolves when somebody presses q or Ctrl-C, or closes the terminal; never where there is no keyboard. */
export async function untilQuit(keyboard: ByteSource): Promise<void> {
  if (keyboard.setRawMode === undefined) return new Promise(() => undefined);
  keyboard.setRawMode(true);
  try {
    for await (const keys of keyboard) {
      const text = Buffer.from(keys).toString('latin1');
      if (text.includes('q') || text.includes(CTRL_C)) return;
    }
  } catch {
    // A terminal that is gone has no keys any more.
  } finally {
    keyboard.setRawMode(false);
  }
}
