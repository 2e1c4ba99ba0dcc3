/** What speaks against a replica: its connections are refused, or its probes fail. */
const AGAINST = { connections: 1 << 0, probes: 1 << 1 } as const;

/** Who judges a replica: requests by their connections, or the control plane by its probes. */
export type HealthSource = keyof typeof AGAINST;

/** How replicas are judged: `health` of the configuration. */
export interface HealthSettings {
  readonly passive: boolean;
  readonly active: boolean;
  /** Connections refused, or probes failed, one after the other, that make a replica a failing one. */
  readonly failures: number;
  /** How often one request tries a replica whose connections were refused. */
  readonly coolDownMs: number;
}

/** How a replica is, and since when: RFC 3339; null if it was never otherwise. */
export interface Health {
  readonly state: 'ok' | 'failing';
  readonly since: string | null;
}

/** Bytes of shared memory that a board takes, to begin at a multiple of 8. */
export function healthBoardBytes(slotCount: number): number {
  return slotCount * (2 * BigInt64Array.BYTES_PER_ELEMENT + 2 * Int32Array.BYTES_PER_ELEMENT);
}

/**
 * Which replicas fail, as all threads of a gateway see it at the same moment. A failing replica is tried when no other
 * can be: it is never left out. Off until `configure`; each thread has settings of its own, which are the same.
 */
export class HealthTable {
  #settings: HealthSettings = { passive: false, active: false, failures: 1, coolDownMs: 0 };
  readonly #against: Int32Array;
  readonly #refusals: Int32Array;
  /** Milliseconds since 1970. */
  readonly #since: BigInt64Array;
  /** From when on a request may try one whose connections were refused: milliseconds since 1970. */
  readonly #retryAt: BigInt64Array;
  readonly #onChange: () => void;

  /** @param onChange called when a replica begins or ceases to fail by what this thread told */
  constructor(buffer: SharedArrayBuffer, offset: number, slotCount: number, onChange: () => void) {
    this.#since = new BigInt64Array(buffer, offset, slotCount);
    this.#retryAt = new BigInt64Array(buffer, offset + this.#since.byteLength, slotCount);
    const wordsOffset = offset + 2 * this.#since.byteLength;
    this.#against = new Int32Array(buffer, wordsOffset, slotCount);
    this.#refusals = new Int32Array(buffer, wordsOffset + this.#against.byteLength, slotCount);
    this.#onChange = onChange;
  }

  /** Judges by these settings from now on. */
  configure(settings: HealthSettings): void {
    this.#settings = settings;
  }

  isFailing(slot: number): boolean {
    return Atomics.load(this.#against, slot) !== 0;
  }

  /** How a replica is; null if nobody judges. */
  healthOf(slot: number): Health | null {
    if (!this.#settings.passive && !this.#settings.active) return null;
    const sinceMs = Number(Atomics.load(this.#since, slot));
    return {
      state: this.isFailing(slot) ? 'failing' : 'ok',
      since: sinceMs === 0 ? null : new Date(sinceMs).toISOString(),
    };
  }

  /** A request could not connect. Returns whether that made the replica a failing one. */
  noteRefused(slot: number): boolean {
    const { passive, failures, coolDownMs } = this.#settings;
    if (!passive || Atomics.add(this.#refusals, slot, 1) + 1 < failures) return false;
    Atomics.store(this.#retryAt, slot, BigInt(Date.now() + coolDownMs));
    return this.markFailing(slot, 'connections');
  }

  /** A request or a probe was answered. Returns whether the replica is ok again by that. */
  noteAnswered(slot: number): boolean {
    if (!this.#settings.passive || Atomics.load(this.#refusals, slot) === 0) return false;
    Atomics.store(this.#refusals, slot, 0);
    return this.clearFailing(slot, 'connections');
  }

  /** Whether the present request is to try a replica whose connections were refused: one is, once in a cool-down. */
  claimRetry(slot: number): boolean {
    if (Atomics.load(this.#against, slot) !== AGAINST.connections) return false;
    const retryAt = Atomics.load(this.#retryAt, slot);
    const nowMs = Date.now();
    if (retryAt > nowMs) return false;
    const next = BigInt(nowMs + this.#settings.coolDownMs);
    return Atomics.compareExchange(this.#retryAt, slot, retryAt, next) === retryAt;
  }

  /** Returns whether the replica fails only now. */
  markFailing(slot: number, judge: HealthSource): boolean {
    const before = Atomics.or(this.#against, slot, AGAINST[judge]);
    if (before === 0) this.#changed(slot);
    return before === 0;
  }

  /** Returns whether the replica is ok by that. */
  clearFailing(slot: number, judge: HealthSource): boolean {
    const isOk = Atomics.and(this.#against, slot, ~AGAINST[judge]) === AGAINST[judge];
    if (isOk) this.#changed(slot);
    return isOk;
  }

  /** What was known of a replica says nothing any more: it was drained, and perhaps restarted, or is another one. */
  forget(slot: number): void {
    Atomics.store(this.#refusals, slot, 0);
    Atomics.store(this.#since, slot, 0n);
    if (Atomics.exchange(this.#against, slot, 0) !== 0) this.#onChange();
  }

  #changed(slot: number): void {
    Atomics.store(this.#since, slot, BigInt(Date.now()));
    this.#onChange();
  }
}
