import type { Invocation } from '#cli/command';
import { createPaint, sizeOf } from '#cli/terminal';
import type { Phase } from '#rollout-board/facts';
import { toFrame, wrapText } from './frame.ts';
import type { LineReader, Reporter } from './reporter.ts';

/** The reporter for this output: JSON lines, a display on a terminal, or lines elsewhere. */
export function createReporter(
  invocation: Invocation,
  { isJson, names }: { readonly isJson: boolean; readonly names: readonly string[] },
): Reporter {
  const lines = createLineReader(invocation.stdin);
  if (isJson) return createJsonReporter(invocation);
  return invocation.stdout.isTTY === true && invocation.env.TERM !== 'dumb'
    ? createDisplay(invocation, names, lines)
    : createPlainReporter(invocation, lines);
}

function createLineReader(stdin: Invocation['stdin']): LineReader {
  let bytes: AsyncIterator<Uint8Array> | null = null;
  let typed = '';
  return async () => {
    bytes ??= stdin[Symbol.asyncIterator]();
    while (!typed.includes('\n')) {
      const next = await bytes.next();
      if (next.done === true) return null;
      typed += Buffer.from(next.value).toString('latin1');
    }
    const end = typed.indexOf('\n');
    const line = typed.slice(0, end);
    typed = typed.slice(end + 1);
    return line;
  };
}

/** One line for each phase, and for each line of a command. */
function createPlainReporter({ stdout }: Invocation, readLine: LineReader): Reporter {
  const phases = new Map<string, Phase>();
  return {
    show(name, phase, text) {
      if (phases.get(name) === phase) return;
      phases.set(name, phase);
      stdout.write(`${name}: ${text}\n`);
    },
    output: (name, line) => stdout.write(`${name} | ${line}\n`),
    say: (line) => stdout.write(`${line}\n`),
    async ask(question) {
      stdout.write(`${question} `);
      return await readLine();
    },
    end: () => undefined,
  };
}

/** One JSON object for each change. */
function createJsonReporter({ stdout }: Invocation): Reporter {
  const write = (event: object) =>
    stdout.write(`${JSON.stringify({ time: new Date().toISOString(), ...event })}\n`);
  return {
    show: (replica, phase, text, figures) =>
      write({ event: 'replica', replica, phase, text, ...(figures === undefined ? {} : { figures }) }),
    output: (replica, line) => write({ event: 'output', replica, line }),
    say: (text) => write({ event: 'rollout', text }),
    ask: async () => null,
    end: () => undefined,
  };
}

const CLEAR_BELOW = '\u001b[J';
const upBy = (lines: number) => (lines === 0 ? '\r' : `\u001b[${lines}F`);

/** How often the time that a phase has taken is shown anew. */
const REDRAW_MS = 1_000;

/** How far a replica is. Times are of the monotonic clock. */
interface Progress {
  readonly phase: Phase;
  readonly text: string;
  readonly sinceMs: number;
  /** Null: this run has not begun it. */
  readonly beganMs: number | null;
}

/** A line for each replica that is kept up to date at the end of the terminal; other lines scroll past above it. */
export function createDisplay(
  { stdout, env }: Invocation,
  names: readonly string[],
  readLine: LineReader,
): Reporter {
  const paint = createPaint(stdout, env);
  const replicas = new Map<string, Progress>(
    names.map((name) => [name, { phase: 'waiting', text: 'waits', sinceMs: 0, beganMs: null }]),
  );
  let question: string | null = null;
  /** The widths of the lines above the cursor that are drawn anew. */
  let shown: readonly number[] = [];
  let isEnded = false;

  const draw = (above = '') => {
    const { columns, rows: height } = sizeOf(stdout);
    const asked = question === null ? [] : wrapText(`${question} `, columns - 1);
    const rows = [...replicas].map(([name, progress]) => ({
      name,
      ...progress,
      seconds: secondsOf(progress),
    }));
    // At the end nothing is drawn anew, so that the frame may be higher than the terminal.
    const size = { columns, height: isEnded ? Number.POSITIVE_INFINITY : height - 1 - asked.length };
    const lines = [...toFrame(rows, size, paint), ...asked];
    // A terminal that has become narrower since then has wrapped what it showed.
    const up = shown.reduce((sum, width) => sum + Math.max(1, Math.ceil(width / columns)), 0);
    const end = question === null ? '\n' : '';
    stdout.write(`${upBy(up)}${CLEAR_BELOW}${above}${lines.join('\n')}${end}`);
    // The cursor is at the end of a question, and below the last line otherwise.
    const plain = [...toFrame(rows, size), ...asked];
    shown = plain.slice(0, plain.length - (question === null ? 0 : 1)).map(({ length }) => length);
  };
  const timer = setInterval(draw, REDRAW_MS);

  return {
    show(name, phase, text) {
      const before = replicas.get(name);
      const nowMs = performance.now();
      const sinceMs = before?.phase === phase ? before.sinceMs : nowMs;
      const beganMs = before?.beganMs ?? (isOver(phase) ? null : nowMs);
      replicas.set(name, { phase, text, sinceMs, beganMs });
      draw();
    },
    output: (name, line) => draw(`${paint(`${name} | ${line}`, 'dim')}\n`),
    say(line) {
      if (isEnded) stdout.write(`${line}\n`);
      else draw(`${line}\n`);
    },
    async ask(asked) {
      question = asked;
      draw();
      const line = await readLine();
      question = null;
      // The terminal has echoed the Enter: the cursor is below the question.
      shown = [...shown, 0];
      if (!isEnded) draw();
      return line;
    },
    end() {
      clearInterval(timer);
      question = null;
      isEnded = true;
      draw();
    },
  };
}

function isOver(phase: Phase): boolean {
  return phase === 'done' || phase === 'warned' || phase === 'stopped';
}

function secondsOf({ phase, sinceMs, beganMs }: Progress): number | null {
  const fromMs = isOver(phase) ? beganMs : sinceMs;
  const untilMs = isOver(phase) ? sinceMs : performance.now();
  return fromMs === null || phase === 'waiting' ? null : Math.floor((untilMs - fromMs) / 1_000);
}
