import type { Replica } from './replica.ts';
import type { SharedState } from './shared-state.ts';

/**
 * The turns of one model: its candidates in configured order and one cursor that all threads share, left after the
 * replica that was taken last. A replica that is skipped (drained, or refused this request) costs nobody a turn.
 */
export class Rotation {
  readonly candidates: readonly Replica[];
  readonly #cursor: number;
  readonly #shared: SharedState;
  /**
   * For each place the first at or after it, in a circle, that is not drained: choosing costs the same however many
   * are drained. Derived again when drains have changed; null when all are drained.
   */
  #undrainedFrom: readonly number[] | null = null;
  #derivedAt: number | null = null;

  constructor(candidates: readonly Replica[], cursor: number, shared: SharedState) {
    this.candidates = candidates;
    this.#cursor = cursor;
    this.#shared = shared;
  }

  /**
   * Finds the next candidate in turn that is neither drained nor tried, and moves the cursor behind it. Returns null
   * when there is none. O(1), and one step more for each tried replica on the way.
   */
  takeTurn(tried: ReadonlySet<Replica>): Replica | null {
    for (;;) {
      const cursor = this.#shared.cursorAt(this.#cursor);
      const place = this.#findFrom(cursor, tried);
      if (place === null) return null;
      const next = (place + 1) % this.candidates.length;
      // Another thread may have taken this very turn: then it is the next one's.
      if (this.#shared.moveCursor(this.#cursor, cursor, next)) return this.candidates[place] ?? null;
    }
  }

  #findFrom(cursor: number, tried: ReadonlySet<Replica>): number | null {
    const undrainedFrom = this.#undrained();
    if (undrainedFrom === null) return null;
    const count = undrainedFrom.length;
    // The list may have been longer when the cursor was left where it is.
    let place = undrainedFrom[cursor % count] ?? 0;
    for (let passed = 0; passed <= tried.size; passed++) {
      const replica = this.candidates[place];
      if (replica !== undefined && !tried.has(replica)) return place;
      place = undrainedFrom[(place + 1) % count] ?? 0;
    }
    return null;
  }

  #undrained(): readonly number[] | null {
    const version = this.#shared.drainVersion;
    if (version !== this.#derivedAt) {
      this.#undrainedFrom = toUndrainedFrom(this.candidates);
      this.#derivedAt = version;
    }
    return this.#undrainedFrom;
  }
}

function toUndrainedFrom(candidates: readonly Replica[]): readonly number[] | null {
  const first = candidates.findIndex((replica) => !replica.isDrained);
  if (first === -1) return null;
  const places = new Array<number>(candidates.length);
  let next = first;
  for (let place = candidates.length - 1; place >= 0; place--) {
    if (candidates[place]?.isDrained === false) next = place;
    places[place] = next;
  }
  return places;
}
