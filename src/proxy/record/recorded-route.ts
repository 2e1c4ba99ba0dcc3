import type { RequestRecord } from '#otel/record/registry';
import type { Lease } from '#replicas';

type Route = Lease['route'];

/** What a prefix by which requests are routed has to do with the replica of an attempt. */
export interface PrefixUse {
  readonly blocks: number;
  /** Unicode code points of its blocks. */
  readonly chars: number;
  readonly share: number;
  /** Where the last request with it went: to this replica, to another one, or nowhere lately. */
  readonly last: 'here' | 'elsewhere' | 'nowhere';
}

/** How the replicas of one request were chosen. */
export class RecordedRoutes {
  /** Null: the request is routed by no prefix. */
  prefix: PrefixUse | null = null;
  #replica = '';
  #route: Route | null = null;
  /** Those of replicas before; null: there was none. The answer of one of them may go to the client after all. */
  #earlier: Map<string, Route> | null = null;

  /** A replica is chosen. */
  note(replica: string, route: Route): void {
    if (this.#route !== null) {
      this.#earlier ??= new Map();
      this.#earlier.set(this.#replica, this.#route);
    }
    this.#replica = replica;
    this.#route = route;
  }

  /** The latest choice as field lines. A name that is no printable ASCII is percent-encoded. */
  get fieldLines(): string {
    if (this.#route === null) return '';
    const name = /^[\x21-\x7e]+$/.test(this.#replica) ? this.#replica : encodeURIComponent(this.#replica);
    return `X-Gateway-Replica: ${name}\r\nX-Gateway-Route-Reason: ${this.#route.reason}\r\n`;
  }

  /** Fills in how the record's replica was chosen. Call it when all else is filled in. */
  fill(record: RequestRecord): void {
    const { replica } = record;
    if (replica === undefined) return;
    const route = replica === this.#replica ? this.#route : this.#earlier?.get(replica);
    if (route == null) return;
    record.route_reason = route.reason;
    // Where nothing was ruled out, they are the replicas of the model: the record of nearly every request is shorter.
    if (route.ruledOut !== null) {
      record.route_candidates = route.candidates;
      record.route_ruled_out = route.ruledOut;
    }
    const { prefix } = this;
    if (prefix === null) return;
    if (route.reason === 'prefix' || route.reason === 'prefix_next') {
      record.route_prefix_blocks = prefix.blocks;
      record.route_prefix_share = prefix.share;
    }
    const miss = decidePrefixMiss(prefix, record);
    if (miss !== null) record.route_prefix_miss = miss;
  }
}

/**
 * Decides why the engine had not cached a prefix; null: it had, or nobody knows. It had not if it took less than half of
 * the prefix's tokens from its cache, counted by the characters.
 */
export function decidePrefixMiss(
  { chars, last }: PrefixUse,
  {
    cached_tokens: cached,
    prompt_tokens: tokens,
    prompt_chars: allChars,
  }: Pick<RequestRecord, 'cached_tokens' | 'prompt_tokens' | 'prompt_chars'>,
): 'never_seen' | 'elsewhere' | 'evicted_or_restarted' | null {
  if (cached === undefined) return null;
  const expected = tokens === undefined || !allChars ? 1 : (tokens * chars) / allChars;
  if (cached > 0 && cached >= expected / 2) return null;
  if (last === 'here') return 'evicted_or_restarted';
  return last === 'nowhere' ? 'never_seen' : 'elsewhere';
}
