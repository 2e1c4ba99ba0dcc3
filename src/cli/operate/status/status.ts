import { setTimeout as sleep } from 'node:timers/promises';
import { itemsOf, memberOf } from '#base/parsed';
import { openGateways } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import {
  type Cell,
  type Column,
  createPaint,
  type Style,
  sizeOf,
  tableWidthOf,
  toOneLine,
  toTable,
  widthOf,
} from '#cli/terminal';
import { parseDuration } from '#config/values';
import { withoutControls } from '#otel/base';
import { printJson } from '../../print-json.ts';
import { stateWordOf, toAge, toCell } from '../../tables/replica-cells.ts';
import { enterFullScreen, readKeys } from '../full-screen.ts';
import { foldParts, toDecimal, toIdentity } from '../head-parts.ts';
import { OVERVIEW_PATH } from '../overview-path.ts';
import { toExitCode } from './exit-code.ts';
import { conditionsOf, type Look, lookAt, toChangeKey } from './look.ts';

const CONDITIONS_PATH = '/admin/conditions';

/** On a terminal at least this wide there is room for what to do. */
const WIDE = 100;

/**
 * `gateway status`: shows what is wrong with running gateways, the most severe first. Returns 0 if nothing is worse than a
 * notice, 1 with a warning, 2 with a critical condition, 3 if a gateway gave no answer. With `--watch` it looks again and
 * again until the first signal, q or Ctrl-C, and returns what the last look says.
 */
export async function status(invocation: Invocation): Promise<number> {
  const { args, env, stdout, stderr } = invocation;
  const { values } = parseOptions(args, COMMANDS.status.options);
  const intervalMs = parseDuration(values.interval ?? '2s');
  if (!intervalMs) throw new UsageError("option '--interval' needs a duration such as 500ms or 2s");
  if (values.interval !== undefined && !values.watch)
    throw new UsageError("option '--interval' needs '--watch'");
  const clients = await openGateways(values, env);
  const path = values.json ? CONDITIONS_PATH : OVERVIEW_PATH;
  const look = (signal?: AbortSignal) => Promise.all(clients.map((client) => lookAt(client, path, signal)));
  const toText = createFormat(invocation, values.verbose === true);
  const print = (looks: readonly Look[]) => {
    if (values.json) printJson(stdout, toJson(looks));
    else stdout.write(toText(looks));
  };
  const first = await look();
  const answered = first.filter(({ problem }) => problem === null);
  if (values.watch && answered.length > 0) {
    const watching = { first, look, intervalMs };
    if (stdout.isTTY && !values.json) return await watchOnScreen(invocation, watching, toText);
    const separated = (looks: readonly Look[]) => {
      print(looks);
      stdout.write('\n');
    };
    return await watchInPipe(invocation, watching, separated);
  }
  for (const { problem } of first) if (problem !== null) stderr.write(`gateway: ${problem}\n`);
  if (answered.length > 0) print(values.json ? first : answered);
  return toExitCode(first);
}

/** Formats looks for the output. The terminal may have another size each time. */
type ToText = (looks: readonly Look[]) => string;

function createFormat({ env, stdout }: Invocation, isVerbose: boolean): ToText {
  const paint = createPaint(stdout, env);
  return (looks) => {
    const hasRemedy = isVerbose || (stdout.isTTY === true && sizeOf(stdout).columns >= WIDE);
    return toStatusText(looks, { paint, width: tableWidthOf(stdout), hasRemedy });
  };
}

/** The answer of the only gateway as it is; of several a list with their addresses. */
function toJson(looks: readonly Look[]): unknown {
  const [only] = looks;
  if (looks.length === 1 && only?.problem === null) return only.answer;
  return {
    gateways: looks.map(({ baseUrl, answer, problem }) =>
      problem === null ? { admin: baseUrl, ...(answer as object) } : { admin: baseUrl, error: problem },
    ),
  };
}

interface Watching {
  readonly first: readonly Look[];
  readonly look: (signal: AbortSignal) => Promise<readonly Look[]>;
  readonly intervalMs: number;
}

/** Yields the looks, until the signal aborts. */
async function* lookAgain({ first, look, intervalMs }: Watching, ended: AbortSignal) {
  yield first;
  for (;;) {
    await sleep(intervalMs, undefined, { signal: ended }).catch(() => undefined);
    if (ended.aborted) return;
    const next = await look(ended);
    // What is cut by the signal looks like a gateway that does not answer.
    if (ended.aborted) return;
    yield next;
  }
}

/** Shows the looks on the whole screen. What a gateway has answered stays while it does not answer. */
async function watchOnScreen(
  { stdin, stdout, signals }: Invocation,
  watching: Watching,
  toText: ToText,
): Promise<number> {
  const quit = new AbortController();
  const ended = AbortSignal.any([quit.signal, signals.shutdown]);
  using screen = enterFullScreen(stdout);
  void readKeys(stdin, () => undefined).then(() => quit.abort());
  let exitCode = 0;
  let known: readonly Look[] = [];
  for await (const looks of lookAgain(watching, ended)) {
    const before = known;
    known = looks.map((look, at) => ({ ...look, answer: look.answer ?? before[at]?.answer ?? null }));
    screen.show(toText(known));
    exitCode = toExitCode(looks);
  }
  return exitCode;
}

/** Prints the looks in which something has changed. */
async function watchInPipe(
  { signals }: Invocation,
  watching: Watching,
  print: (looks: readonly Look[]) => void,
): Promise<number> {
  let shown = '';
  let exitCode = 0;
  for await (const looks of lookAgain(watching, signals.shutdown)) {
    const key = toChangeKey(looks);
    if (key !== shown) print(looks);
    shown = key;
    exitCode = toExitCode(looks);
  }
  return exitCode;
}

/** How the status looks. */
type StatusLook = Required<Parameters<typeof toTable>[2]> & {
  /** Whether it says what to do. */
  readonly hasRemedy: boolean;
};

/** Formats what gateways have answered, and why one does not: a head and a line for each condition. */
function toStatusText(looks: readonly Look[], style: StatusLook): string {
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
  const words = replicas.map(stateWordOf).filter((word) => word !== 'removed');
  const inflight = replicas.reduce<number>((sum, replica) => sum + Number(memberOf(replica, 'inflight')), 0);
  const queued = toDecimal(memberOf(memberOf(answer, 'stats'), 'queued'));
  return [
    ...toIdentity(memberOf(answer, 'gateway')),
    `up ${toAge(upMs)}`,
    `${time.slice(11, 19)} UTC`,
    `${words.filter((word) => word === 'serving').length} of ${words.length} replicas serving`,
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
