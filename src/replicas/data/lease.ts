import type { GpuShare } from '#replicas/gpu-time';
import type { Route } from '#replicas/route';
import type { decideWhyNone } from '#replicas/routing';
import type { Replica } from './replica.ts';

/** One unit of `inflight` on a replica, already counted. Released once, however often it is disposed. */
export class Lease implements Disposable {
  readonly replica: Replica;
  /** How the replica was chosen. */
  readonly route: Route;
  /** Null: the replica has no `gpu_count`. */
  readonly gpuShare: GpuShare | null;
  #isHeld = true;

  constructor(replica: Replica, route: Route) {
    this.replica = replica;
    this.route = route;
    this.gpuShare = replica.beginGpuShare();
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.gpuShare?.end();
    this.replica.finish();
  }
}

/** Why there is no lease. */
export type NoLease = ReturnType<typeof decideWhyNone>;
