import type { decideWhyNone } from '../routing/why-none.ts';
import type { Replica } from './replica.ts';

/** One unit of `inflight` on a replica, already counted. Released once, however often it is disposed. */
export class Lease implements Disposable {
  readonly replica: Replica;
  #isHeld = true;

  constructor(replica: Replica) {
    this.replica = replica;
  }

  [Symbol.dispose](): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    this.replica.finish();
  }
}

/** Why there is no lease. */
export type NoLease = ReturnType<typeof decideWhyNone>;
