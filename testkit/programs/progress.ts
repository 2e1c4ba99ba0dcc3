import type { WriteStream } from 'node:tty';

/** How often the time is shown anew. */
const REDRAW_MS = 1_000;
const CLEAR_LINE = '\r\u001b[K';

/** Says what a step does at the moment. */
export type Tell = (text: string) => void;

/** Shows how far a program is. */
export interface Progress {
  /**
   * Carries out a step. While it lasts, a terminal shows its number, its title, what it tells and its time in one line,
   * which is gone at its end. Elsewhere, as in CI, one line says that it begins.
   */
  during<T>(title: string, work: (tell: Tell) => Promise<T>): Promise<T>;
}

/** Where the line is shown, and where it is not: `CI` and `TERM` of the environment. */
interface ProgressOutput {
  readonly stream: Pick<WriteStream, 'write' | 'isTTY' | 'columns'>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Begins to count the steps of a program. `total`: how many there are. It writes to standard error by default. */
export function startProgress(
  total: number,
  { stream, env }: ProgressOutput = { stream: process.stderr, env: process.env },
): Progress {
  const isLive = stream.isTTY === true && env.TERM !== 'dumb' && !env.CI;
  const startedMs = performance.now();
  let count = 0;
  return {
    async during(title, work) {
      count++;
      const number = `${count}/${total}`;
      if (!isLive) {
        stream.write(`${number}  ${toClock(performance.now() - startedMs)}  ${title}\n`);
        return await work(() => undefined);
      }
      const beganMs = performance.now();
      let told = '';
      const draw = () => {
        const nowMs = performance.now();
        const times = `${toClock(nowMs - beganMs)} of ${toClock(nowMs - startedMs)}`;
        const text = `${number}  ${times}  ${title}${told === '' ? '' : `: ${told}`}`;
        stream.write(`${CLEAR_LINE}${text.slice(0, Math.max(1, (stream.columns || 80) - 1))}`);
      };
      const clear = () => stream.write(CLEAR_LINE);
      const timer = setInterval(draw, REDRAW_MS);
      // An interrupted program leaves no half line.
      process.once('exit', clear);
      draw();
      try {
        return await work((text) => {
          told = text;
          draw();
        });
      } finally {
        clearInterval(timer);
        process.off('exit', clear);
        clear();
      }
    },
  };
}

function toClock(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
