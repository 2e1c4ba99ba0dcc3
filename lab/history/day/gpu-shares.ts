import type { Prices } from './messages.ts';
import { REPLICAS } from './traffic.ts';

const MS_PER_HOUR = 3_600_000;

/** What a lease has got of the GPUs of its replica. */
export interface Share {
  readonly replica: number;
  gpuMs: number;
  /** Null: the replica has had no price. */
  cost: number | null;
}

/**
 * Reckons the GPU time of leases anew, in the simplest way: whenever something changes at a replica, each of its leases gets
 * its equal part of the time since the last change.
 */
export class GpuShares {
  readonly #open = REPLICAS.map(() => new Set<Share>());
  readonly #atMs: number[];
  #prices: Prices;
  /** What all GPUs would cost for the time that has passed. */
  hoursByPrice = 0;

  constructor(nowMs: number, prices: Prices) {
    this.#atMs = REPLICAS.map(() => nowMs);
    this.#prices = prices;
  }

  begin(replica: number, nowMs: number): Share {
    this.pass(nowMs);
    const share = { replica, gpuMs: 0, cost: (this.#prices[replica] ?? null) === null ? null : 0 };
    this.#open[replica]?.add(share);
    return share;
  }

  end(share: Share, nowMs: number): void {
    this.pass(nowMs);
    this.#open[share.replica]?.delete(share);
  }

  setPrices(prices: Prices, nowMs: number): void {
    this.pass(nowMs);
    this.#prices = prices;
  }

  /** Divides the time up to now. */
  pass(nowMs: number): void {
    for (const [replica, { gpuCount }] of REPLICAS.entries()) {
      const gpuMs = gpuCount * (nowMs - (this.#atMs[replica] ?? 0));
      this.#atMs[replica] = nowMs;
      const price = this.#prices[replica] ?? 0;
      this.hoursByPrice += (gpuMs * price) / MS_PER_HOUR;
      const open = this.#open[replica] ?? new Set();
      for (const share of open) {
        share.gpuMs += gpuMs / open.size;
        if (share.cost !== null) share.cost += (gpuMs * price) / open.size / MS_PER_HOUR;
      }
    }
  }
}
