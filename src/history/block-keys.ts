import { hasFailed } from '#otel/outcome';
import type { RequestRecord } from '#otel/record/registry';
import { FRAME_RECORDS } from './record-frame.ts';

/*
 * What a record is found by, as 32-bit hashes in lists: 12 bytes for the ids of a record, where a row of a table took 42 µs
 * of CPU. A hash that is the same by chance costs some blocks that are read in vain.
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

/** As many as `idsOf` has. */
const IDS = 4;

/** What the records of a frame are found by, in no order. */
export interface FrameKeys {
  /** Those of their ids. */
  readonly ids: Uint32Array;
  /** Those of all else, each once. */
  readonly names: Uint32Array;
}

/** Collects the keys of the records of one frame. */
export class KeyCollector {
  readonly #ids = new Uint32Array(IDS * FRAME_RECORDS);
  #idCount = 0;
  readonly #names = new Set<number>();
  /** The values of the record before: the next one has most of them, too. */
  readonly #before = new Map<KeyKind, string | number>();

  add(record: Readonly<RequestRecord>): void {
    const { request_id, trace_id, response_id, client_request_id } = record;
    this.#addId(request_id);
    this.#addId(trace_id);
    if (response_id !== undefined) this.#addId(response_id);
    if (client_request_id !== undefined) this.#addId(client_request_id);
    const { tenant, client, model, replica, status } = record;
    if (this.#isNew('tenant', tenant)) this.#addName('tenant', tenant);
    if (this.#isNew('client', client)) this.#addName('client', client);
    if (this.#isNew('model', model)) this.#addName('model', model);
    if (this.#isNew('replica', replica)) this.#addName('replica', replica);
    if (this.#isNew('status', status)) {
      this.#addName('status', String(status));
      this.#addName('class', toStatusClass(status));
    }
    if (hasFailed(record)) this.#addName('failed', '');
  }

  /** Returns the keys so far, and begins anew. */
  take(): FrameKeys {
    const keys = { ids: this.#ids.slice(0, this.#idCount), names: Uint32Array.from(this.#names) };
    this.#idCount = 0;
    this.#names.clear();
    this.#before.clear();
    return keys;
  }

  #addId(id: string): void {
    this.#ids[this.#idCount++] = toKey('id', id);
  }

  #isNew<Value extends string | number>(kind: KeyKind, value: Value | undefined): value is Value {
    if (value === undefined || this.#before.get(kind) === value) return false;
    this.#before.set(kind, value);
    return true;
  }

  #addName(kind: KeyKind, value: string): void {
    this.#names.add(toKey(kind, value));
  }
}
