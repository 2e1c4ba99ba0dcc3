import {
  type Finding,
  NOT_SEEN,
  REACHABILITY_REASONS,
  type ReachabilityState,
  toReachability,
} from '#replicas/reachability';
import type { SharedTable } from '#shared-memory';

/** The findings by their index in `finding`; 0: nothing was found out. */
const FINDINGS: readonly (Finding | null)[] = [null, 'reachable', ...REACHABILITY_REASONS];
const FINDING_MASK = 0xff;
/** A bit of `finding`: the replica is an inference server, because it has listed models or served a request. */
const IS_ENGINE = 1 << 8;
/** A bit of `finding`: the replica has answered a request or a probe. */
const HAS_ANSWERED = 1 << 9;
const REACHABLE_ENGINE = FINDINGS.indexOf('reachable') | IS_ENGINE | HAS_ANSWERED;

/** The findings that come from an answer. */
const ANSWERS: ReadonlySet<Finding> = new Set([
  'reachable',
  'not_an_engine',
  'engine_failed',
  'loading_model',
]);

/** One row for each slot. */
export const REACHABILITY_COLUMNS = {
  /** An index of FINDINGS, IS_ENGINE and HAS_ANSWERED. */
  finding: 'int32',
  /** When the reachability last changed: milliseconds since 1970; 0 if nothing was found out. */
  sinceMs: 'int64',
  /** The same by the clock that threads share. */
  changedMs: 'int64',
} as const;

/** What requests and probes have found out about the replicas, shared by all threads of a gateway. */
export class ReachabilityTable {
  readonly #rows: SharedTable<typeof REACHABILITY_COLUMNS>;
  readonly #nowMs: () => number;

  constructor(rows: SharedTable<typeof REACHABILITY_COLUMNS>, nowMs: () => number) {
    this.#rows = rows;
    this.#nowMs = nowMs;
  }

  stateOf(slot: number): ReachabilityState {
    const finding = this.findingOf(slot);
    if (finding === null) return NOT_SEEN;
    const sinceMs = Number(Atomics.load(this.#rows.sinceMs, slot));
    return {
      state: toReachability(finding),
      // The thread that has changed the finding writes its time just after it.
      since: sinceMs === 0 ? null : new Date(sinceMs).toISOString(),
      lastedMs: this.#nowMs() - Number(Atomics.load(this.#rows.changedMs, slot)),
      reason: finding === 'reachable' ? null : finding,
    };
  }

  /** The last finding; null: none. */
  findingOf(slot: number): Finding | null {
    return toFinding(Atomics.load(this.#rows.finding, slot));
  }

  /** Whether a replica has ever answered; a drain does not change that. */
  hasAnswered(slot: number): boolean {
    return (Atomics.load(this.#rows.finding, slot) & HAS_ANSWERED) !== 0;
  }

  /**
   * Notes the status of a response to a request. `isInference`: only an inference server answers such a request with
   * 2xx. Called for every response, so it writes only what changed.
   */
  noteAnswered(slot: number, status: number, isInference: boolean): void {
    if (Atomics.load(this.#rows.finding, slot) === REACHABLE_ENGINE) return;
    const isServed = isInference && status < 300;
    // Errors do not show that a server is an engine, nor that the engine works again.
    const finding = this.findingOf(slot);
    if (!isServed && (finding === 'not_an_engine' || (status >= 500 && isOfEngine(finding)))) return;
    this.note(slot, 'reachable', isServed);
  }

  /**
   * Notes what a probe or a failed connection has shown. `isEngine`: also, that it is an inference server. One that is
   * known to be one does not cease to be.
   */
  note(slot: number, finding: Finding, isEngine = false): void {
    const cells = this.#rows.finding;
    for (;;) {
      const before = Atomics.load(cells, slot);
      const bits =
        (before & ~FINDING_MASK) | (isEngine ? IS_ENGINE : 0) | (ANSWERS.has(finding) ? HAS_ANSWERED : 0);
      const shown = finding === 'not_an_engine' && (bits & IS_ENGINE) !== 0 ? 'reachable' : finding;
      const after = FINDINGS.indexOf(shown) | bits;
      if (before === after) return;
      if (Atomics.compareExchange(cells, slot, before, after) !== before) continue;
      const known = toFinding(before);
      if (known === null || toReachability(known) !== toReachability(shown)) {
        Atomics.store(this.#rows.changedMs, slot, BigInt(Math.floor(this.#nowMs())));
        Atomics.store(this.#rows.sinceMs, slot, BigInt(Date.now()));
      }
      return;
    }
  }

  /** Forgets what is known: the replica was drained and may have restarted. */
  forget(slot: number): void {
    Atomics.and(this.#rows.finding, slot, ~FINDING_MASK);
    Atomics.store(this.#rows.sinceMs, slot, 0n);
  }

  /** Prepares a slot for another replica. */
  clear(slot: number): void {
    Atomics.store(this.#rows.finding, slot, 0);
    Atomics.store(this.#rows.sinceMs, slot, 0n);
  }
}

function toFinding(cell: number): Finding | null {
  return FINDINGS[cell & FINDING_MASK] ?? null;
}

/** Whether a finding came from the engine's own answer. */
function isOfEngine(finding: Finding | null): boolean {
  return finding === 'engine_failed' || finding === 'loading_model';
}
