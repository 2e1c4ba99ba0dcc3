import { itemsOf, memberOf } from '#base/parsed';
import { type Cell, type Paint, type Style, toOneLine, toTable } from '#cli/terminal';

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
export function toRolloutTable(answer: unknown, look: Look): string {
  const rows = itemsOf(answer, 'rollouts').map((rollout): Cell[] => [
    textOf(rollout, 'id'),
    toStateCell(rollout),
    `${memberOf(rollout, 'done_count')}/${memberOf(rollout, 'replica_count')}`,
    textOf(rollout, 'started_at').replace(/\.\d+Z$/, 'Z'),
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
export function toRolloutText(answer: unknown, look: Look): string {
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
