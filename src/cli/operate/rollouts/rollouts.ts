import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '#base';
import { itemsOf, memberOf } from '#base/parsed';
import { type AdminClient, openAdmin } from '#cli/admin-client';
import { COMMANDS, parseArguments } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import {
  type Cell,
  createPaint,
  type Paint,
  type Style,
  tableWidthOf,
  toOneLine,
  toTable,
} from '#cli/terminal';
import { printJson } from '../../print-json.ts';
import { toTimeText } from '../../tables/time-text.ts';
import { enterFullScreen, readKeys } from '../full-screen.ts';

/** What can be asked of a rollout, and what is said when it was. */
const ACTIONS = {
  pause: 'begins no further replica: what is under way goes to its end',
  continue: 'goes on',
  abort: 'is ended for good',
} as const;

const LOOK_EVERY_MS = 1_000;

/**
 * `gateway rollouts`: lists the rollouts that are known, or shows one; `gateway rollouts pause ID` and the like ask something
 * of one. Without an ID the only one under way is meant. Throws a UsageError or what a call throws.
 */
export async function rollouts(invocation: Invocation): Promise<number> {
  const { args, env, stdout } = invocation;
  const { values, positionals } = parseArguments(args, COMMANDS.rollouts.options);
  const [first, second] = positionals;
  const action = isAction(first) ? first : null;
  const id = action === null ? first : second;
  const surplus = positionals[action === null ? 1 : 2];
  if (surplus !== undefined) throw new UsageError(`unexpected argument ${JSON.stringify(surplus)}`);
  const { json: isJson = false, watch: isWatched = false } = values;
  if (action !== null) {
    if (isWatched) throw new UsageError("option '--watch' is for looking");
    const client = await openAdmin(values, env, 'operator');
    const meant = id ?? (await findLive(client));
    const answer = await client.call('POST', `${toPath(meant)}/${action}`);
    if (isJson) printJson(stdout, answer);
    else stdout.write(`${toOneLine(meant)} ${toAnswerText(action, answer)}\n`);
    return 0;
  }
  const client = await openAdmin(values, env);
  const path = id === undefined ? '/admin/rollouts' : toPath(id);
  const toText = (answer: unknown) => {
    const look = { paint: createPaint(stdout, env), width: tableWidthOf(stdout) };
    return id === undefined ? toRolloutTable(answer, look) : toRolloutText(answer, look);
  };
  if (isWatched) return await watch(invocation, { client, path, isJson, toText });
  const answer = await client.call('GET', path);
  if (isJson) printJson(stdout, answer);
  else stdout.write(toText(answer));
  return 0;
}

const toPath = (id: string) => `/admin/rollouts/${encodeURIComponent(id)}`;

function isAction(word: string | undefined): word is keyof typeof ACTIONS {
  return word !== undefined && Object.hasOwn(ACTIONS, word);
}

/** One that nobody drives is aborted at once; otherwise its driver is asked. */
function toAnswerText(action: keyof typeof ACTIONS, answer: unknown): string {
  const isOver = memberOf(answer, 'state') === 'aborted';
  return isOver || memberOf(answer, 'asked') === null
    ? ACTIONS[action]
    : `is asked: it ${ACTIONS[action]} within two seconds`;
}

/** The id of the only rollout under way. Throws a StartError if there are none or several. */
async function findLive(client: AdminClient): Promise<string> {
  const answer = await client.call('GET', '/admin/rollouts');
  const live = itemsOf(answer, 'rollouts').filter((rollout) =>
    ['running', 'paused', 'vanished'].includes(String(memberOf(rollout, 'state'))),
  );
  const [only, second] = live.map((rollout) => String(memberOf(rollout, 'id')));
  if (only === undefined) throw new StartError('no rollout is under way');
  if (second !== undefined) {
    throw new StartError('several rollouts are under way: name one of gateway rollouts by its ID');
  }
  return only;
}

interface Watched {
  readonly client: AdminClient;
  readonly path: string;
  readonly isJson: boolean;
  readonly toText: (answer: unknown) => string;
}

/** Looks again and again until a signal or q. On a terminal it uses the whole screen; elsewhere it prints what has changed. */
async function watch(
  { stdin, stdout, signals }: Invocation,
  { client, path, isJson, toText }: Watched,
): Promise<number> {
  const quit = new AbortController();
  const ended = AbortSignal.any([quit.signal, signals.shutdown]);
  const onScreen = stdout.isTTY === true && !isJson;
  using screen = onScreen ? enterFullScreen(stdout) : null;
  if (onScreen) void readKeys(stdin, () => undefined).then(() => quit.abort());
  let shown = '';
  while (!ended.aborted) {
    const answer = await client.call('GET', path);
    const text = isJson ? `${JSON.stringify(answer)}\n` : toText(answer);
    if (screen !== null) screen.show(text);
    else if (text !== shown) stdout.write(isJson ? text : `${text}\n`);
    shown = text;
    await sleep(LOOK_EVERY_MS, undefined, { signal: ended }).catch(() => undefined);
  }
  return 0;
}

/** How a table looks. */
interface Look {
  readonly paint: Paint;
  readonly width: number | null;
}

const STYLES: Readonly<Record<string, Style>> = {
  running: 'yellow',
  paused: 'yellow',
  vanished: 'red',
  stopped: 'red',
  done: 'green',
  good: 'green',
  bad: 'red',
  undecided: 'yellow',
};

/** The list of rollouts, the newest first. */
function toRolloutTable(answer: unknown, look: Look): string {
  const rows = itemsOf(answer, 'rollouts').map((rollout): Cell[] => [
    textOf(rollout, 'id'),
    toStateCell(rollout),
    `${memberOf(rollout, 'done_count')}/${memberOf(rollout, 'replica_count')}`,
    toTimeText(textOf(rollout, 'started_at')),
    toDriver(rollout),
    textOf(rollout, 'state') === 'stopped' ? toProblem(rollout) : textOf(rollout, 'sentence'),
  ]);
  if (rows.length === 0) return 'no rollout is known\n';
  const columns = [
    ...[{ head: 'ID' }, { head: 'STATE' }, { head: 'DONE' }, { head: 'BEGAN', rank: 2 }],
    ...[
      { head: 'DRIVEN BY', least: 8, rank: 1 },
      { head: 'WHAT', least: 16, cut: 'end' as const },
    ],
  ];
  return toTable(columns, rows, look);
}

/** One rollout with its replicas. */
function toRolloutText(answer: unknown, look: Look): string {
  const problem = memberOf(answer, 'problem');
  const state = toStateCell(answer);
  const { text, style } = typeof state === 'object' ? state : { text: String(state), style: null };
  const advice = textOf(problem, 'advice');
  const reason = textOf(memberOf(answer, 'plan'), 'reason');
  const token = textOf(memberOf(answer, 'driver'), 'token_name');
  const lines = [
    `rollout ${textOf(answer, 'id')} ${look.paint(text, style)}: ${textOf(answer, 'sentence')}`,
    `began ${textOf(answer, 'started_at')}, driven by ${toDriver(answer)}${token === '' ? '' : ` with the token ${token}`}`,
    ...(reason === '' ? [] : [`because: ${reason}`]),
    ...(problem === null || problem === undefined ? [] : [`stopped by: ${toProblem(answer)}`]),
    ...(advice === '' ? [] : [`next: ${advice}`]),
  ];
  const rows = itemsOf(answer, 'replicas').map((replica): Cell[] => {
    const verdict = textOf(replica, 'verdict');
    return [
      textOf(replica, 'name'),
      textOf(replica, 'phase'),
      toSteps(replica),
      { text: verdict === '' ? '-' : verdict, style: STYLES[verdict] ?? null },
      textOf(replica, 'text'),
    ];
  });
  const columns = [
    ...[{ head: 'REPLICA', least: 8 }, { head: 'PHASE' }, { head: 'STEPS', least: 8, rank: 1 }],
    ...[{ head: 'VERDICT' }, { head: 'WHAT', least: 16, cut: 'end' as const }],
  ];
  return `${lines.map((line) => `${line}\n`).join('')}\n${toTable(columns, rows, look)}`;
}

/** Why a rollout stopped, with the replica at which it did. */
function toProblem(rollout: unknown): string {
  const problem = memberOf(rollout, 'problem');
  return [textOf(problem, 'replica'), textOf(problem, 'sentence')].filter((text) => text !== '').join(': ');
}

/** The steps of a replica with their seconds, the last ones last. */
function toSteps(replica: unknown): string {
  const steps = itemsOf(replica, 'steps').map((step) => {
    const name = textOf(step, 'step').replace('rollout_', '');
    const ms = memberOf(step, 'duration_ms');
    return `${name} ${typeof ms === 'number' ? (ms / 1_000).toFixed(1) : '?'} s`;
  });
  return steps.length === 0 ? '-' : steps.join(', ');
}

function toStateCell(rollout: unknown): Cell {
  const state = textOf(rollout, 'state');
  const asked = textOf(rollout, 'asked');
  return { text: asked === '' ? state : `${state} (asked to ${asked})`, style: STYLES[state] ?? null };
}

function toDriver(rollout: unknown): string {
  const driver = memberOf(rollout, 'driver');
  return `${textOf(driver, 'user')}@${textOf(driver, 'host')}`;
}

/** A text of the answer on one line, without what moves a cursor; empty if there is none. */
function textOf(value: unknown, name: string): string {
  const text = memberOf(value, name);
  return typeof text === 'string' ? toOneLine(text) : '';
}
