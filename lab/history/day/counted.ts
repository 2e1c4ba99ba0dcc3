import type { Share } from './gpu-shares.ts';
import type { DayRequest } from './traffic.ts';

/** A request whose record the history was given, as the day reckons it. */
export interface Counted {
  readonly instance: string;
  readonly seq: number;
  readonly request: DayRequest;
  /** By the clock on the wall: epoch milliseconds. */
  readonly arriveEpochMs: number;
  readonly endEpochMs: number;
  readonly shares: readonly Share[];
  readonly currency: string;
}

/** The GPU seconds of a request; undefined: it had none. */
export function toGpuSeconds({ shares }: Counted): number | undefined {
  return shares.length === 0 ? undefined : shares.reduce((sum, { gpuMs }) => sum + gpuMs, 0) / 1_000;
}

/** What a request costs; undefined: there was no price. */
export function toCost({ shares }: Pick<Counted, 'shares'>): number | undefined {
  const costs = shares.flatMap(({ cost }) => (cost === null ? [] : [cost]));
  return costs.length === 0 ? undefined : costs.reduce((sum, cost) => sum + cost, 0);
}

/** Whether two amounts are the same, but for the rounding of doubles. */
export function isSame(a: number | undefined, b: number | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(a), Math.abs(b));
}
