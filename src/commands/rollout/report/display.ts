import type { Invocation } from '../../command-line/command.ts';
import { sizeOf } from '../../terminal/full-screen.ts';
import { createPaint, type Style } from '../../terminal/paint.ts';
import type { LineReader, Phase, Reporter } from './reporter.ts';

const MARKS: Readonly<Record<Phase, readonly [mark: string, style: Style | null]>> = {
  waiting: ['·', 'dim'],
  draining: ['↓', 'yellow'],
  restarting: ['↻', 'yellow'],
  starting: ['…', 'yellow'],
  ramp: ['↑', 'yellow'],
  compare: ['≈', 'yellow'],
  done: ['✓', 'green'],
  warned: ['!', 'yellow'],
  stopped: ['✗', 'red'],
};

const CLEAR_BELOW = '\u001b[J';
const upBy = (lines: number) => (lines === 0 ? '' : `\u001b[${lines}F`);

/** How often the time that a phase has taken is shown anew. */
const REDRAW_MS = 1_000;

/** A line of the display. */
interface Row {
  readonly phase: Phase;
  readonly text: string;
  readonly sinceMs: number;
}

/** A line for each replica that is kept up to date at the end of the terminal; other lines scroll past above it. */
export function createDisplay(
  { stdout, env }: Invocation,
  names: readonly string[],
  readLine: LineReader,
): Reporter {
  const paint = createPaint(stdout, env);
  const rows = new Map<string, Row>(
    names.map((name) => [name, { phase: 'waiting', text: '', sinceMs: performance.now() }]),
  );
  const width = Math.max(...names.map(({ length }) => length));
  let shownLines = 0;

  const draw = (above = '') => {
    const { columns, rows: height } = sizeOf(stdout);
    const lines = selectRows([...rows], height - 1).map(([name, row]) => {
      const [mark, style] = MARKS[row.phase];
      const isOver = row.phase === 'done' || row.phase === 'warned' || row.phase === 'stopped';
      const age = isOver || row.phase === 'waiting' ? '' : `  ${toClock(performance.now() - row.sinceMs)}`;
      const text = `${name.padEnd(width)}  ${row.text}${age}`.slice(0, columns - 3);
      return `${paint(mark, style)} ${row.phase === 'waiting' ? paint(text, 'dim') : text}`;
    });
    stdout.write(`${upBy(shownLines)}${CLEAR_BELOW}${above}${lines.map((line) => `${line}\n`).join('')}`);
    shownLines = lines.length;
  };
  const timer = setInterval(draw, REDRAW_MS);

  return {
    show(name, phase, text) {
      const before = rows.get(name);
      const sinceMs = before?.phase === phase ? before.sinceMs : performance.now();
      rows.set(name, { phase, text, sinceMs });
      draw();
    },
    output(name, line) {
      draw(`${paint(`${name} | ${line}`.slice(0, sizeOf(stdout).columns - 1), 'dim')}\n`);
    },
    say: (line) => draw(`${line}\n`),
    async ask(question) {
      draw();
      stdout.write(`${question} `);
      clearInterval(timer);
      const line = await readLine();
      // The terminal has echoed the line: what follows is drawn below it.
      shownLines = 0;
      timer.refresh();
      return line;
    },
    end() {
      clearInterval(timer);
      draw();
    },
  };
}

/** The rows that fit: those under way first, then those that wait, then those that are over. */
function selectRows(rows: readonly (readonly [string, Row])[], height: number) {
  if (rows.length <= height) return rows;
  const rank = ({ phase }: Row) => {
    if (phase === 'done' || phase === 'warned') return 2;
    return phase === 'waiting' ? 1 : 0;
  };
  const kept = new Set(rows.toSorted(([, a], [, b]) => rank(a) - rank(b)).slice(0, Math.max(1, height)));
  return rows.filter((row) => kept.has(row));
}

function toClock(ms: number): string {
  const seconds = Math.floor(ms / 1_000);
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
