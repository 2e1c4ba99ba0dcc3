import type { SharedTable } from '#shared-memory';
import { earnTurn, hasTurn, rampShare, spendTurn } from './ramp.ts';

/** One row for each slot. */
export const RAMP_COLUMNS = {
  /** When the ramp began, in milliseconds of the clock that all threads share. */
  beganMs: 'int64',
  /** 0: there is no ramp. */
  durationMs: 'int32',
  /** The turns that the replica holds, in units of 1 / CREDIT_UNITS. */
  credit: 'int32',
} as const;

const CREDIT_UNITS = 2 ** 24;

/** A ramp: when it began, in milliseconds of the clock that all threads share, and how long it takes. */
export interface Ramp {
  readonly beganMs: number;
  readonly durationMs: number;
}

/** How far a ramp is. */
export interface RampProgress {
  readonly elapsedMs: number;
  readonly durationMs: number;
  /** The share of an even part of the turns: from 0.05 to 1. */
  readonly share: number;
}

/** Which replicas get fewer turns because they were undrained a moment ago, shared by all threads of a gateway. */
export class RampTable {
  readonly #rows: SharedTable<typeof RAMP_COLUMNS>;
  /** Shows the same time in all threads, in milliseconds. */
  readonly nowMs: () => number;

  constructor(rows: SharedTable<typeof RAMP_COLUMNS>, nowMs: () => number) {
    this.#rows = rows;
    this.nowMs = nowMs;
  }

  /** Begins a ramp, or ends it with null. The same ramp again changes nothing. */
  set(slot: number, ramp: Ramp | null): void {
    const { beganMs, durationMs, credit } = this.#rows;
    const began = BigInt(Math.round(ramp?.beganMs ?? 0));
    if (Atomics.exchange(beganMs, slot, began) !== began) Atomics.store(credit, slot, 0);
    Atomics.store(durationMs, slot, ramp?.durationMs ?? 0);
  }

  /** Null: it is on no ramp, or at its end. */
  progressOf(slot: number): RampProgress | null {
    const durationMs = Atomics.load(this.#rows.durationMs, slot);
    if (durationMs === 0) return null;
    const elapsedMs = Math.max(0, this.nowMs() - Number(Atomics.load(this.#rows.beganMs, slot)));
    if (elapsedMs >= durationMs) return null;
    return { elapsedMs, durationMs, share: rampShare(elapsedMs, durationMs) };
  }

  /** Whether it has a turn. */
  hasTurn(slot: number): boolean {
    return hasTurn(Atomics.load(this.#rows.credit, slot) / CREDIT_UNITS);
  }

  /** Notes a request for a model of a replica with this share. `evenShares`: see `earnTurn`. */
  earnTurn(slot: number, share: number, evenShares: number): void {
    this.#change(slot, (credit) => earnTurn(credit, share, evenShares));
  }

  /** Notes that it took a request. */
  spendTurn(slot: number): void {
    this.#change(slot, spendTurn);
  }

  #change(slot: number, change: (credit: number) => number): void {
    const cells = this.#rows.credit;
    for (;;) {
      const before = Atomics.load(cells, slot);
      const after = Math.round(change(before / CREDIT_UNITS) * CREDIT_UNITS);
      if (Atomics.compareExchange(cells, slot, before, after) === before) return;
    }
  }
}
