import type { Paint, Style } from '#cli/terminal';
import type { Phase } from '#rollout-board/facts';

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

/** A replica as the display shows it. */
export interface Row {
  readonly name: string;
  readonly phase: Phase;
  readonly text: string;
  /** Seconds in this phase, or of all phases if it is over; null: not known. */
  readonly seconds: number | null;
}

/** What a frame is drawn for. Its lines are shorter than `columns`, so that no terminal wraps them. */
export interface FrameSize {
  readonly columns: number;
  /** The most lines. */
  readonly height: number;
}

/** A narrower column of text goes below the name instead of beside it. */
const MIN_TEXT = 24;
const CLOCK_WIDTH = 5;

/**
 * The lines of all replicas: mark, name, time and text, which is wrapped rather than cut. If they are higher than the
 * terminal, those under way are kept first, then those that wait, and a last line counts the others.
 */
export function toFrame(
  rows: readonly Row[],
  { columns, height }: FrameSize,
  paint: Paint = (text) => text,
): readonly string[] {
  const room = Math.max(10, columns - 1);
  const longest = Math.max(0, ...rows.map(({ name }) => name.length));
  const nameWidth = Math.min(longest, Math.floor(room / 2), room - CLOCK_WIDTH - 3);
  const blocks = rows.map((row) => ({ row, lines: toLines(row, room, nameWidth, paint) }));
  if (blocks.reduce((sum, { lines }) => sum + lines.length, 0) <= height) {
    return blocks.flatMap(({ lines }) => lines);
  }
  let left = Math.max(1, height - 1);
  const kept = new Set<Row>();
  for (const { row, lines } of blocks.toSorted((a, b) => rankOf(a.row) - rankOf(b.row))) {
    if (left < lines.length && kept.size > 0) break;
    kept.add(row);
    left -= lines.length;
  }
  const hidden = rows.filter((row) => !kept.has(row));
  const shown = blocks.filter(({ row }) => kept.has(row)).flatMap(({ lines }) => lines);
  return [...shown.slice(0, Math.max(1, height - 1)), paint(toHiddenText(hidden).slice(0, room), 'dim')];
}

/** Breaks a text between words into lines of at most this width. Longer words are broken too. */
export function wrapText(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    const joined = line === '' ? word : `${line} ${word}`;
    if (joined.length <= width) {
      line = joined;
      continue;
    }
    if (line !== '') lines.push(line);
    line = word;
    while (line.length > width) {
      lines.push(line.slice(0, width));
      line = line.slice(width);
    }
  }
  return [...lines, line];
}

function toLines(
  { name, phase, text, seconds }: Row,
  room: number,
  nameWidth: number,
  paint: Paint,
): string[] {
  const [mark, style] = MARKS[phase];
  const shownName = name.length > nameWidth ? `${name.slice(0, nameWidth - 1)}…` : name.padEnd(nameWidth);
  const clock = (seconds === null ? '' : toClock(seconds)).padStart(CLOCK_WIDTH);
  const head = `${shownName} ${clock}`;
  const paintText = (line: string) => (phase === 'waiting' ? paint(line, 'dim') : line);
  const indent = head.length + 4;
  if (room - indent >= MIN_TEXT) {
    const [first = '', ...others] = wrapText(text, room - indent);
    const begin = `${paint(mark, style)} ${paintText(`${head}  ${first}`.trimEnd())}`;
    return [begin, ...others.map((line) => `${' '.repeat(indent)}${line}`)];
  }
  const below = text === '' || phase === 'waiting' ? [] : wrapText(text, room - 4);
  return [`${paint(mark, style)} ${paintText(head.trimEnd())}`, ...below.map((line) => `    ${line}`)];
}

/** Those under way and those that stopped, then those that wait, then those that are done. */
function rankOf({ phase }: Row): number {
  if (phase === 'done' || phase === 'warned') return 2;
  return phase === 'waiting' ? 1 : 0;
}

function toHiddenText(hidden: readonly Row[]): string {
  const counts = ['under way', 'waiting', 'done'].map(
    (words, rank) => [words, hidden.filter((row) => rankOf(row) === rank).length] as const,
  );
  const known = counts.filter(([, count]) => count > 0).map(([words, count]) => `${count} ${words}`);
  return `  not shown: ${known.join(', ')}`;
}

function toClock(seconds: number): string {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`;
}
