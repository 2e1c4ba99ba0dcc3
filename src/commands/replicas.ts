import { itemsOf, memberOf } from '../json/members.ts';
import { openAdmin, printJson } from './admin/client.ts';
import type { Invocation } from './command-line/command.ts';
import { COMMANDS } from './command-line/command-table.ts';
import { parseOptions } from './command-line/options.ts';
import { createPaint, type Paint } from './terminal/paint.ts';
import { toAge, toCell, toNameAndState } from './terminal/replica-cells.ts';
import { toOneLine, toTable } from './terminal/table.ts';

/** `gateway replicas`: shows the replicas of a running gateway, as a table or JSON. */
export async function replicas({ args, env, stdout }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.replicas.options);
  const client = await openAdmin(values, env);
  const answer = await client.call('GET', '/admin/replicas');
  if (values.json) printJson(stdout, answer);
  else {
    const nowEpochMs = Date.now();
    const table = toReplicaTable(answer, nowEpochMs, createPaint(stdout, env));
    stdout.write(table + toSourceLines(answer, nowEpochMs));
  }
  return 0;
}

const HEAD = [
  'NAME',
  'STATE',
  'INFLIGHT',
  'SAFE TO STOP',
  'HOST',
  'GPUS',
  'ENGINE',
  'MODELS',
  'URL',
  'REASON',
];

function toReplicaTable(answer: unknown, nowEpochMs: number, paint: Paint): string {
  const rows = itemsOf(answer, 'replicas').map((replica) => [
    ...toNameAndState(replica, nowEpochMs),
    toCell(memberOf(replica, 'inflight')),
    toYesOrNo(memberOf(replica, 'safe_to_stop')),
    toCell(memberOf(replica, 'host')),
    toGpus(memberOf(replica, 'gpu_count'), memberOf(replica, 'gpu_model')),
    toCell(memberOf(replica, 'engine')),
    toCell(memberOf(replica, 'models')),
    toCell(memberOf(replica, 'url')),
    toCell(memberOf(replica, 'reason')),
  ]);
  return toTable(HEAD, rows, { paint });
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
  return [`${what} fails ${ageOf(failing)} (${memberOf(failing, 'error_code')}), so ${consequence}`];
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
