import { itemsOf, memberOf } from '#base/parsed';
import { openAdmin } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { type Column, createPaint, tableWidthOf, toOneLine, toTable } from '#cli/terminal';
import { printJson } from './print-json.ts';
import { NAME_AND_STATE, stateWordOf, toAge, toCell, toNameAndState } from './tables/replica-cells.ts';

const REPLICA_STATES = COMMANDS.replicas.options.state.words;

/** `gateway replicas`: shows the replicas of a running gateway, as a table or JSON. Throws a UsageError. */
export async function replicas({ args, env, stdout }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.replicas.options);
  const isWanted = toFilter(values);
  const client = await openAdmin(values, env);
  const answer = await client.call('GET', '/admin/replicas');
  const shown = itemsOf(answer, 'replicas').filter(isWanted);
  if (values.json) printJson(stdout, { ...(answer as object), replicas: shown });
  else {
    const nowEpochMs = Date.now();
    const width = values.wide ? null : tableWidthOf(stdout);
    const table = toReplicaTable(shown, nowEpochMs, { paint: createPaint(stdout, env), width });
    const text = shown.length > 0 ? table : 'no such replicas\n';
    stdout.write(text + toSourceLines(answer, nowEpochMs));
  }
  return 0;
}

/** Returns whether a replica is in one of the states and serves the model, as far as these are given. */
function toFilter({
  state: states = [],
  model,
}: {
  readonly state?: readonly string[];
  readonly model?: string;
}): (replica: unknown) => boolean {
  const unknownState = states.find((state) => !REPLICA_STATES.some((known) => known === state));
  if (unknownState !== undefined) {
    throw new UsageError(`option '--state' must be one of ${REPLICA_STATES.join(', ')}`);
  }
  return (replica) =>
    (states.length === 0 || states.includes(stateWordOf(replica).replaceAll(' ', '-'))) &&
    (model === undefined || serves(memberOf(replica, 'models'), model));
}

/** Whether a replica with these models serves this one. `*` stands for every model. */
function serves(models: unknown, model: string): boolean {
  return Array.isArray(models) && (models.includes(model) || models.includes('*'));
}

/** What a narrow terminal leaves out first is told by `gateway top`, or is where the replica is, not how it does. */
const COLUMNS: readonly Column[] = [
  ...NAME_AND_STATE,
  { head: 'INFLIGHT' },
  { head: 'BACKGROUND', rank: 3 },
  { head: 'SAFE TO STOP', rank: 1 },
  { head: 'HOST', rank: 5, least: 12 },
  { head: 'GPUS', rank: 6 },
  { head: 'ENGINE', rank: 4 },
  { head: 'MODELS', rank: 2, least: 14, cut: 'list' },
  { head: 'URL', rank: 7, least: 20 },
  { head: 'REASON', rank: 2, least: 14, cut: 'end' },
];

function toReplicaTable(
  shown: readonly unknown[],
  nowEpochMs: number,
  look: Parameters<typeof toTable>[2],
): string {
  const rows = shown.map((replica) => [
    ...toNameAndState(replica, nowEpochMs),
    toCell(memberOf(replica, 'inflight')),
    toCell(memberOf(replica, 'background')),
    toYesOrNo(memberOf(replica, 'safe_to_stop')),
    toCell(memberOf(replica, 'host')),
    toGpus(memberOf(replica, 'gpu_count'), memberOf(replica, 'gpu_model')),
    toCell(memberOf(replica, 'engine')),
    toCell(memberOf(replica, 'models')),
    toCell(memberOf(replica, 'url')),
    toCell(memberOf(replica, 'reason')),
  ]);
  return toTable(COLUMNS, rows, look);
}

/** One line for each source of replicas that fails, and for each of its pods that waits for the gateway. */
function toSourceLines(answer: unknown, nowEpochMs: number): string {
  const ageOf = (item: unknown) => toAge(nowEpochMs - Date.parse(String(memberOf(item, 'since'))));
  return itemsOf(answer, 'sources')
    .flatMap((source) => {
      const gate = memberOf(source, 'readiness_gate');
      const kind = String(memberOf(source, 'kind'));
      const lines = [
        ...toFailureLines(source, ageOf, kind, 'its replicas may be out of date'),
        ...toFailureLines(gate, ageOf, 'readiness gate', 'its new pods do not get ready'),
        ...toWaitingLines(gate, ageOf),
      ];
      return lines.map((line) => `${toOneLine(`${memberOf(source, 'name')}: ${line}`)}\n`);
    })
    .join('');
}

function toFailureLines(
  failing: unknown,
  ageOf: (item: unknown) => string,
  what: string,
  consequence: string,
): readonly string[] {
  if (memberOf(failing, 'state') !== 'failing') return [];
  const cause = memberOf(failing, 'error_cause');
  const why = [memberOf(failing, 'error_code'), ...(typeof cause === 'string' ? [cause] : [])].join(', ');
  return [`${what} fails ${ageOf(failing)} (${why}), so ${consequence}`];
}

function toWaitingLines(gate: unknown, ageOf: (item: unknown) => string): readonly string[] {
  const shown = itemsOf(gate, 'waiting_pods');
  const others = Number(memberOf(gate, 'waiting')) - shown.length;
  return [
    ...shown.map((each) => {
      const problem = memberOf(each, 'problem') ?? 'not asked yet';
      return `pod ${memberOf(each, 'pod')} waits ${ageOf(each)} for its readiness gate: ${problem}`;
    }),
    ...(others > 0 ? [`further pods that wait: ${others}`] : []),
  ];
}

function toYesOrNo(value: unknown): string {
  if (typeof value !== 'boolean') return 'unknown';
  return value ? 'yes' : 'no';
}

function toGpus(count: unknown, model: unknown): string {
  const parts = [typeof count === 'number' ? `${count} x` : '', typeof model === 'string' ? model : ''];
  return parts.filter((part) => part !== '').join(' ') || '-';
}
