import { itemsOf, memberOf, openAdmin, printJson } from './admin/client.ts';
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

/** One line for each source of replicas that fails. */
function toSourceLines(answer: unknown, nowEpochMs: number): string {
  return itemsOf(answer, 'sources')
    .filter((source) => memberOf(source, 'state') === 'failing')
    .map((source) => {
      const [name, kind, since, code] = (['name', 'kind', 'since', 'error_code'] as const).map((key) =>
        String(memberOf(source, key)),
      );
      const age = toAge(nowEpochMs - Date.parse(since ?? ''));
      return `${toOneLine(`${name}: ${kind} fails ${age} (${code}), so its replicas may be out of date`)}\n`;
    })
    .join('');
}

function toYesOrNo(value: unknown): string {
  if (typeof value !== 'boolean') return 'unknown';
  return value ? 'yes' : 'no';
}

function toGpus(count: unknown, model: unknown): string {
  const parts = [typeof count === 'number' ? `${count} x` : '', typeof model === 'string' ? model : ''];
  return parts.filter((part) => part !== '').join(' ') || '-';
}
