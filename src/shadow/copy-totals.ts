import type { ShadowSpan } from '#otel/span';
import type { ShadowReport } from './shadow-report.ts';
import type { Skip } from './why-not.ts';

/** What became of the requests that were due to be copied to one shadow. */
export interface CopyTotal {
  readonly name: string;
  /** Copies that have ended. */
  readonly copies: ReadonlyMap<ShadowSpan['outcome'], number>;
  /** Requests that were not copied. */
  readonly skipped: ReadonlyMap<Skip, number>;
}

/** Counts copies by shadow from the start of the gateway on: no count ever goes down, as metrics must not. */
export class CopyTotals {
  readonly #totals = new Map<
    string,
    { copies: Map<ShadowSpan['outcome'], number>; skipped: Map<Skip, number> }
  >();

  /** Takes what a worker tells. */
  add({ spans, skips }: Pick<ShadowReport, 'spans' | 'skips'>): void {
    for (const { shadow, outcome } of spans) increase(this.#of(shadow).copies, outcome, 1);
    for (const { shadow, why, count } of skips) increase(this.#of(shadow).skipped, why, count);
  }

  /** Of these replicas, as far as they were shadows. Those of others are forgotten: names of pods never end. */
  of(names: ReadonlySet<string>): readonly CopyTotal[] {
    for (const name of this.#totals.keys()) if (!names.has(name)) this.#totals.delete(name);
    return Array.from(this.#totals, ([name, total]) => ({ name, ...total }));
  }

  #of(shadow: string) {
    const known = this.#totals.get(shadow) ?? { copies: new Map(), skipped: new Map() };
    this.#totals.set(shadow, known);
    return known;
  }
}

function increase<K>(counts: Map<K, number>, key: K, by: number): void {
  counts.set(key, (counts.get(key) ?? 0) + by);
}
