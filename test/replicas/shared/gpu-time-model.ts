/** A lease of the model, with what it has got so far. */
export interface ModelLease {
  readonly worker: number;
  gotMs: number;
}

/** Divides GPU time as it is defined: at each moment equally between the leases that are held. */
export class GpuTimeModel {
  readonly leases = new Set<ModelLease>();
  busyMs = 0;
  unrecordedMs = 0;
  #atMs = 0;

  advance(nowMs: number, gpuCount: number): void {
    const gpuMs = Math.max(0, nowMs - this.#atMs) * gpuCount;
    this.#atMs = Math.max(this.#atMs, nowMs);
    if (this.leases.size === 0) return;
    this.busyMs += gpuMs;
    for (const lease of this.leases) lease.gotMs += gpuMs / this.leases.size;
  }

  begin(worker: number): ModelLease {
    const lease = { worker, gotMs: 0 };
    this.leases.add(lease);
    return lease;
  }

  end(lease: ModelLease, isRecorded: boolean): void {
    this.leases.delete(lease);
    if (!isRecorded) this.unrecordedMs += lease.gotMs;
  }

  clearWorker(worker: number): void {
    for (const lease of this.leases) if (lease.worker === worker) this.end(lease, false);
  }
}
