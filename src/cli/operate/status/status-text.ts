import { itemsOf, memberOf } from '#base/parsed';
import { type Cell, type Column, type Style, toOneLine, toTable, widthOf } from '#cli/terminal';
import { withoutControls } from '#otel/base';
import { stateWordOf, toAge, toCell } from '../../tables/replica-cells.ts';
import { foldParts, toDecimal, toIdentity } from '../head-parts.ts';
import { conditionsOf, type Look } from './look.ts';

/** How the status looks. */
type StatusLook = Required<Parameters<typeof toTable>[2]> & {
  /** Whether it says what to do. */
  readonly hasRemedy: boolean;
};

/** Formats what gateways have answered, and why one does not: a head and a line for each condition. */
export function toStatusText(looks: readonly Look[], style: StatusLook): string {
  return looks.map((look) => toGatewayText(look, style)).join('\n');
}

function toGatewayText(look: Look, style: StatusLook): string {
  const { answer, problem } = look;
  const problemText = problem === null ? '' : `${style.paint(toOneLine(problem), 'red')}\n`;
  if (answer === null) return problemText;
  const head = foldParts(toHead(look), style.width).map((line) => `${line}\n`);
  return head.join('') + problemText + toConditionLines(look, style);
}

/** Who this is, and how much it does. */
function toHead({ answer, baseUrl }: Look): readonly string[] {
  const time = String(memberOf(answer, 'time'));
  const upMs = Date.parse(time) - Date.parse(String(memberOf(answer, 'started_at')));
  const all = itemsOf(answer, 'replicas');
  // No client waits for what a shadow does.
  const replicas = all.filter((replica) => memberOf(replica, 'shadow') == null);
  const shadows = all.length - replicas.length;
  const serving = replicas.filter((replica) => stateWordOf(replica) === 'serving');
  const inflight = replicas.reduce<number>((sum, replica) => sum + Number(memberOf(replica, 'inflight')), 0);
  const queued = toDecimal(memberOf(memberOf(answer, 'stats'), 'queued'));
  return [
    ...toIdentity(memberOf(answer, 'gateway')),
    `up ${toAge(upMs)}`,
    `${time.slice(11, 19)} UTC`,
    `${serving.length} of ${replicas.length} replicas serving`,
    ...(shadows === 0 ? [] : [`${shadows} ${shadows === 1 ? 'shadow' : 'shadows'}`]),
    `${toDecimal(inflight)} in flight`,
    `${toDecimal(memberOf(memberOf(answer, 'last_minute'), 'requests_per_s'))} requests/s`,
    `${queued} of ${toDecimal(memberOf(answer, 'queue_size'))} records queued`,
    baseUrl,
  ];
}

/** A narrow terminal leaves out the subject, which the sentence names too. */
const COLUMNS: readonly Column[] = [
  { head: 'SEVERITY' },
  { head: 'SUBJECT', least: 16, rank: 1 },
  { head: 'WHAT IS WRONG', least: 40, cut: 'end' },
  { head: 'FOR' },
];

const STYLES: ReadonlyMap<unknown, Style> = new Map([
  ['critical', 'red'],
  ['warning', 'yellow'],
]);

function toConditionLines(look: Look, { paint, width, hasRemedy }: StatusLook): string {
  const conditions = conditionsOf(look);
  if (conditions.length === 0) return `${paint('nothing is wrong', 'green')}\n`;
  const nowEpochMs = Date.parse(String(memberOf(look.answer, 'time')));
  const rows = conditions.map((condition): Cell[] => {
    const severity = memberOf(condition, 'severity');
    return [
      { text: String(severity), style: STYLES.get(severity) ?? null },
      toSubject(condition),
      toCell(memberOf(condition, 'sentence')),
      toAge(nowEpochMs - Date.parse(String(memberOf(condition, 'since')))),
    ];
  });
  const table = toTable(COLUMNS, rows, { paint, width });
  if (!hasRemedy) return table;
  // A table has one line for its heads and one for each row.
  const [heads, ...lines] = table.trimEnd().split('\n');
  const withRemedies = lines.flatMap((line, at) => [
    line,
    ...toParagraph(memberOf(conditions[at], 'remedy'), width ?? PARAGRAPH_WIDTH).map((each) =>
      paint(each, 'dim'),
    ),
  ]);
  return [heads, ...withRemedies].map((line) => `${line}\n`).join('');
}

/** What kind of thing is wrong, and its name unless there is only one. */
function toSubject(condition: unknown): string {
  const parts = [memberOf(condition, 'subject_kind'), memberOf(condition, 'subject')];
  return parts.filter((part) => typeof part === 'string' && part !== '').join(' ');
}

const INDENT = '    ';
/** Of what to do, where no terminal has a width. */
const PARAGRAPH_WIDTH = 100;
/** No text of the registry is longer. */
const LONGEST_PARAGRAPH = 2_000;

/** Breaks a text into indented lines. */
function toParagraph(text: unknown, width: number): readonly string[] {
  if (typeof text !== 'string') return [];
  const lines: string[] = [];
  for (const word of withoutControls(text.slice(0, LONGEST_PARAGRAPH), ' ').split(' ')) {
    const longer = lines.length === 0 ? `${INDENT}${word}` : `${lines.at(-1)} ${word}`;
    if (lines.length === 0 || widthOf(longer) <= width) lines.splice(-1, 1, longer);
    else lines.push(INDENT + word);
  }
  return lines;
}
