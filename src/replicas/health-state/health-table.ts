import type { SharedTable } from '#shared-memory';
import { HEALTH_JUDGES, type HealthJudge } from './health-decision.ts';

/** One bit for each judge that finds that a replica fails. */
const FAILING = {
  connections: 1 << 0,
  probes: 1 << 1,
  frozen: 1 << 2,
  errors: 1 << 3,
  slow: 1 << 4,
} as const satisfies Readonly<Record<HealthJudge, number>>;

/** Judges for whom one request now and then tries a replica that fails. */
const RETRIED = FAILING.connections | FAILING.frozen;

/** How the health of replicas is decided: `health` of the configuration. */
export interface HealthSettings {
  readonly passive: boolean;
  readonly active: boolean;
  /** Consecutive refused connections, or failed probes, after which a replica fails. */
  readonly failures: number;
  /** How often one request tries a replica whose connections were refused, or that was frozen. */
  readonly coolDownMs: number;
  /** How long a replica may be silent while its peers are not; `auto`: as long as is usual; null: that does not count. */
  readonly frozenAfterMs: number | 'auto' | null;
  /** How it is compared with its peers; null: not at all. */
  readonly peers: object | null;
}

/** Whether a replica fails, and since when: RFC 3339; null if that never changed. */
export interface Health {
  readonly state: 'ok' | 'failing';
  readonly since: string | null;
  /** For how long one that fails has failed, whatever the time of day was set to meanwhile. */
  readonly lastedMs: number;
  /** The judges that `health` of the configuration turns on. */
  readonly judges: readonly HealthJudge[];
  /** Those of them that find that it fails. */
  readonly failingBy: readonly HealthJudge[];
}

/** One row for each slot. */
export const HEALTH_COLUMNS = {
  /** Bits of FAILING. */
  failing: 'int32',
  /** Consecutive refused connections. */
  refusals: 'int32',
  /** When `failing` last changed: milliseconds since 1970; 0 if never. */
  sinceMs: 'int64',
  /** The same by the clock that threads share. */
  changedMs: 'int64',
  /** When a request may try a replica that fails: by the clock that threads share. */
  retryAtMs: 'int64',
} as const;

/**
 * Which replicas fail, shared by all threads of a gateway. A failing replica is never left out: it is tried when no
 * other can be. Health checks are off until `configure`, which each thread calls with the same settings.
 */
export class HealthTable {
  #settings: HealthSettings = {
    passive: false,
    active: false,
    failures: 1,
    coolDownMs: 0,
    frozenAfterMs: null,
    peers: null,
  };
  readonly #rows: SharedTable<typeof HEALTH_COLUMNS>;
  readonly #nowMs: () => number;
  readonly #onChange: () => void;

  /** @param onChange called when this thread marks a replica as failing or as ok */
  constructor(rows: SharedTable<typeof HEALTH_COLUMNS>, nowMs: () => number, onChange: () => void) {
    this.#rows = rows;
    this.#nowMs = nowMs;
    this.#onChange = onChange;
  }

  /** Uses these settings from now on. */
  configure(settings: HealthSettings): void {
    this.#settings = settings;
  }

  isFailing(slot: number): boolean {
    return Atomics.load(this.#rows.failing, slot) !== 0;
  }

  /** The health of a replica; null if health checks are off. */
  healthOf(slot: number): Health | null {
    const judges = HEALTH_JUDGES.filter((judge) => isOn(judge, this.#settings));
    if (judges.length === 0) return null;
    const sinceMs = Number(Atomics.load(this.#rows.sinceMs, slot));
    return {
      state: this.isFailing(slot) ? 'failing' : 'ok',
      since: sinceMs === 0 ? null : new Date(sinceMs).toISOString(),
      lastedMs: this.#nowMs() - Number(Atomics.load(this.#rows.changedMs, slot)),
      judges,
      failingBy: judges.filter((judge) => this.isFailingBy(slot, judge)),
    };
  }

  /** Notes that a request could not connect. Returns whether that shows from now on that the replica fails. */
  noteRefused(slot: number): boolean {
    const { passive, failures } = this.#settings;
    if (!passive || Atomics.add(this.#rows.refusals, slot, 1) + 1 < failures) return false;
    Atomics.store(this.#rows.retryAtMs, slot, this.#nextRetryMs());
    return this.markFailing(slot, 'connections');
  }

  /** Notes that a request or a probe was answered. Returns whether refused connections count no longer. */
  noteAnswered(slot: number): boolean {
    if (!this.#settings.passive || Atomics.load(this.#rows.refusals, slot) === 0) return false;
    Atomics.store(this.#rows.refusals, slot, 0);
    return this.clearFailing(slot, 'connections');
  }

  /** Whether this judge finds that it fails. */
  isFailingBy(slot: number, judge: HealthJudge): boolean {
    return (Atomics.load(this.#rows.failing, slot) & FAILING[judge]) !== 0;
  }

  /** Notes that it is silent while its peers are not. Returns whether it was not frozen before. */
  noteFrozen(slot: number): boolean {
    Atomics.store(this.#rows.retryAtMs, slot, this.#nextRetryMs());
    return this.markFailing(slot, 'frozen');
  }

  /**
   * Whether the present request must try a replica that cannot be connected to, or is frozen, and does not fail
   * otherwise: one request in each cool-down. `inflight`: its requests in flight. While a frozen one has any, those
   * show when it wakes.
   */
  claimRetry(slot: number, inflight: number): boolean {
    const { failing, retryAtMs } = this.#rows;
    const evidence = Atomics.load(failing, slot);
    if (evidence === 0 || (evidence & ~RETRIED) !== 0) return false;
    if ((evidence & FAILING.frozen) !== 0 && inflight > 0) return false;
    const retryAt = Atomics.load(retryAtMs, slot);
    if (retryAt > this.#nowMs()) return false;
    return Atomics.compareExchange(retryAtMs, slot, retryAt, this.#nextRetryMs()) === retryAt;
  }

  #nextRetryMs(): bigint {
    return BigInt(Math.floor(this.#nowMs() + this.#settings.coolDownMs));
  }

  /** Notes that a judge finds that a replica fails. Returns whether it did not before. */
  markFailing(slot: number, judge: HealthJudge): boolean {
    const before = Atomics.or(this.#rows.failing, slot, FAILING[judge]);
    if (before === 0) this.#noteChange(slot);
    return (before & FAILING[judge]) === 0;
  }

  /** Notes that a judge no longer finds that a replica fails. Returns whether it did before. */
  clearFailing(slot: number, judge: HealthJudge): boolean {
    const before = Atomics.and(this.#rows.failing, slot, ~FAILING[judge]);
    if (before === FAILING[judge]) this.#noteChange(slot);
    return (before & FAILING[judge]) !== 0;
  }

  /** Forgets what is known of a slot: its replica was drained and may have restarted, or is a different one. */
  forget(slot: number): void {
    Atomics.store(this.#rows.refusals, slot, 0);
    Atomics.store(this.#rows.sinceMs, slot, 0n);
    if (Atomics.exchange(this.#rows.failing, slot, 0) !== 0) this.#onChange();
  }

  #noteChange(slot: number): void {
    Atomics.store(this.#rows.changedMs, slot, BigInt(Math.floor(this.#nowMs())));
    Atomics.store(this.#rows.sinceMs, slot, BigInt(Date.now()));
    this.#onChange();
  }
}

function isOn(judge: HealthJudge, { passive, active, frozenAfterMs, peers }: HealthSettings): boolean {
  switch (judge) {
    case 'connections':
      return passive;
    case 'probes':
      return active;
    case 'frozen':
      return frozenAfterMs !== null || peers !== null;
    case 'errors':
    case 'slow':
      return peers !== null;
  }
}
