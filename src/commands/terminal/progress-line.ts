import type { TextSink } from '../command-line/command.ts';

/** A line that changes while somebody looks at it. */
export interface LiveLine {
  /** Shows the text in place of the one before; where nobody looks, as a new line, and only when it is another. */
  show(text: string): void;
  /** Leaves the line as it is: what is written next begins below it. */
  end(): void;
}

const BACK_TO_START_AND_CLEAR = '\r\u001b[K';

/** Creates the line on a sink. A text that is wider than the terminal is cut. */
export function createLiveLine(sink: TextSink): LiveLine {
  let shown: string | null = null;
  return {
    show(text) {
      if (text === shown) return;
      shown = text;
      if (!sink.isTTY) sink.write(`${text}\n`);
      else sink.write(BACK_TO_START_AND_CLEAR + text.slice(0, (sink.columns ?? 80) - 1));
    },
    end() {
      if (sink.isTTY && shown !== null) sink.write('\n');
      shown = null;
    },
  };
}
