/** A lease of the model, with what it has got so far. */
export interface ModelLease {
  readonly worker: number;
  gotMs: number;
  gotCost: number;
}

/** Divides GPU time and its cost as they are defined: at each moment equally between the leases that are held. */
export class GpuTimeModel {
  readonly leases = new Set<ModelLease>();
  readonly ms = { busy: 0, idle: 0, unrecorded: 0 };
  readonly cost = { busy: 0, idle: 0, unrecorded: 0 };
  /** What an hour of one GPU costs from now on. */
  hourPrice = 0;
  #atMs: number;

  constructor(nowMs: number) {
    this.#atMs = nowMs;
  }

  advance(nowMs: number, gpuCount: number): void {
    const gpuMs = Math.max(0, nowMs - this.#atMs) * gpuCount;
    const cost = (gpuMs * this.hourPrice) / 3_600_000;
    this.#atMs = Math.max(this.#atMs, nowMs);
    const state = this.leases.size === 0 ? 'idle' : 'busy';
    this.ms[state] += gpuMs;
    this.cost[state] += cost;
    for (const lease of this.leases) {
      lease.gotMs += gpuMs / this.leases.size;
      lease.gotCost += cost / this.leases.size;
    }
  }

  begin(worker: number): ModelLease {
    const lease = { worker, gotMs: 0, gotCost: 0 };
    this.leases.add(lease);
    return lease;
  }

  end(lease: ModelLease, isRecorded: boolean): void {
    this.leases.delete(lease);
    if (isRecorded) return;
    this.ms.unrecorded += lease.gotMs;
    this.cost.unrecorded += lease.gotCost;
  }

  clearWorker(worker: number): void {
    for (const lease of this.leases) if (lease.worker === worker) this.end(lease, false);
  }
}
