import type { TextSink } from '#cli/command';
import { sizeOf } from '#cli/terminal';

/** A line of progress that is updated in place. */
export interface ProgressLine {
  /** Replaces the text on a terminal. Elsewhere writes a new line, if the text has changed. */
  show(text: string): void;
  /** Leaves the last text in place: later output begins on the next line. */
  end(): void;
}

const BACK_TO_START_AND_CLEAR = '\r\u001b[K';

/** Creates a progress line. A text that is wider than the terminal is cut. */
export function createProgressLine(sink: TextSink): ProgressLine {
  let shown: string | null = null;
  return {
    show(text) {
      if (text === shown) return;
      shown = text;
      if (!sink.isTTY) sink.write(`${text}\n`);
      else sink.write(BACK_TO_START_AND_CLEAR + text.slice(0, sizeOf(sink).columns - 1));
    },
    end() {
      if (sink.isTTY && shown !== null) sink.write('\n');
      shown = null;
    },
  };
}
