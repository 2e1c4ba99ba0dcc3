import { memberOf, openAdmin } from './admin-client.ts';
import type { Invocation } from './command.ts';
import { toTable } from './table.ts';

/** `gateway replicas`: the replicas of a running gateway, as a table or JSON. */
export async function replicas(invocation: Invocation): Promise<number> {
  const { client, asJson } = await openAdmin(invocation);
  const answer = await client.call('GET', '/admin/replicas');
  invocation.stdout.write(asJson ? `${JSON.stringify(answer, null, 2)}\n` : toReplicaTable(answer));
  return 0;
}

const HEAD = ['NAME', 'STATE', 'INFLIGHT', 'SAFE TO STOP', 'HOST', 'GPUS', 'ENGINE', 'MODELS', 'URL'];

function toReplicaTable(answer: unknown): string {
  const listed = memberOf(answer, 'replicas');
  const rows = (Array.isArray(listed) ? listed : []).map((replica: unknown) => [
    toCell(memberOf(replica, 'name')),
    memberOf(replica, 'drained') === true ? 'drained' : 'taking requests',
    toCell(memberOf(replica, 'inflight')),
    toYesOrNo(memberOf(replica, 'safe_to_stop')),
    toCell(memberOf(replica, 'host')),
    toGpus(memberOf(replica, 'gpu_count'), memberOf(replica, 'gpu_model')),
    toCell(memberOf(replica, 'engine')),
    toCell(memberOf(replica, 'models')),
    toCell(memberOf(replica, 'url')),
  ]);
  return toTable(HEAD, rows);
}

function toCell(value: unknown): string | number {
  if (typeof value === 'string' || typeof value === 'number') return value;
  return Array.isArray(value) ? value.join(', ') : '-';
}

function toYesOrNo(value: unknown): string {
  if (typeof value !== 'boolean') return 'unknown';
  return value ? 'yes' : 'no';
}

function toGpus(count: unknown, model: unknown): string {
  const parts = [typeof count === 'number' ? `${count} x` : '', typeof model === 'string' ? model : ''];
  return parts.filter((part) => part !== '').join(' ') || '-';
}
