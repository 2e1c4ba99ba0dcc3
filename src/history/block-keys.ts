import { hasFailed } from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';

/*
 * What a record is found by, as 32-bit hashes. The index of a block is a sorted list of them: 12 bytes for the ids of a
 * record, where a row of a table took 42 µs of CPU. A hash that is the same by chance costs one block that is read in vain.
 */

/** What records can be selected by. All ids are of one kind: who looks for one need not know whose it is. */
export type KeyKind = 'id' | 'tenant' | 'client' | 'model' | 'replica' | 'status' | 'class' | 'failed';

const KINDS: readonly KeyKind[] = ['id', 'tenant', 'client', 'model', 'replica', 'status', 'class', 'failed'];
/** FNV-1a, with another start for each kind. */
const FNV_PRIME = 0x01000193;
const FNV_START = 0x811c9dc5;
const STARTS = Object.fromEntries(
  KINDS.map((kind, index) => [kind, Math.imul(FNV_START ^ (index + 1), FNV_PRIME)]),
) as Readonly<Record<KeyKind, number>>;

/** The hash of a value. */
export function toKey(kind: KeyKind, value: string): number {
  let hash = STARTS[kind];
  for (let index = 0; index < value.length; index++) {
    hash = Math.imul(hash ^ value.charCodeAt(index), FNV_PRIME);
  }
  return hash >>> 0;
}

/** The class of a status: `5xx` for 503. */
export function toStatusClass(status: number): string {
  return `${Math.floor(status / 100)}xx`;
}

/** The ids by which a record is found. */
export function idsOf({
  request_id,
  trace_id,
  response_id,
  client_request_id,
}: Readonly<RequestRecord>): readonly (string | undefined)[] {
  return [request_id, trace_id, response_id, client_request_id];
}

/** Collects the keys of the records of one chunk: ids in their order, all else once. */
export class KeyCollector {
  #ids: number[] = [];
  #names = new Set<number>();

  add(record: Readonly<RequestRecord>): void {
    const { request_id, trace_id, response_id, client_request_id } = record;
    const ids = this.#ids;
    ids.push(toKey('id', request_id), toKey('id', trace_id));
    if (response_id !== undefined) ids.push(toKey('id', response_id));
    if (client_request_id !== undefined) ids.push(toKey('id', client_request_id));
    const { tenant, client, model, replica, status } = record;
    const names = this.#names;
    if (tenant !== undefined) names.add(toKey('tenant', tenant));
    if (client !== undefined) names.add(toKey('client', client));
    if (model !== undefined) names.add(toKey('model', model));
    if (replica !== undefined) names.add(toKey('replica', replica));
    names.add(toKey('status', String(status)));
    names.add(toKey('class', toStatusClass(status)));
    if (hasFailed(record)) names.add(toKey('failed', ''));
  }

  /** Returns the keys so far, and begins anew. */
  take(): Uint32Array {
    const keys = Uint32Array.from([...this.#ids, ...this.#names]);
    this.#ids = [];
    this.#names = new Set();
    return keys;
  }
}

/** Whether a sorted list has this key. */
export function hasKey(sorted: Uint32Array, key: number): boolean {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] ?? 0) < key) low = middle + 1;
    else high = middle;
  }
  return sorted[low] === key;
}
