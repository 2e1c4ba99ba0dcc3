import type { Replica } from '../../replicas/data/replica.ts';
import type { FailedAttemptCode } from './forward.ts';

/** Where the proxy reports what replicas do. A pino logger fits. */
export interface ReplicaLogTarget {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** A failed attempt, for the log. */
export interface FailedAttempt {
  readonly code: FailedAttemptCode;
  readonly cause: unknown;
  readonly traceId: string;
}

/** The least time between two warnings about a replica that refuses now and then. */
const WARNING_INTERVAL_MS = 10_000;

interface ReplicaLogState {
  /** Attempts that found it unreachable since the last line about it. */
  failedAttempts: number;
  /** Whether the last line said that it is unreachable. */
  isWarned: boolean;
  warnedAtMs: number;
}

/**
 * Logs when a replica becomes unreachable and when it is back: one line each, not one per request. Every failed attempt
 * is a line at level debug. Lines hold codes only: an error's message may hold an address or a client's bytes.
 */
export class ReplicaLog {
  readonly #log: ReplicaLogTarget;
  readonly #nowMs: () => number;
  /** The replicas that have been unreachable. */
  readonly #unreachable = new WeakMap<Replica, ReplicaLogState>();

  constructor(log: ReplicaLogTarget, nowMs: () => number = () => performance.now()) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** An attempt failed. */
  attemptFailed(replica: Replica, { code, cause, traceId }: FailedAttempt): void {
    const errorCode = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
    const fields = { replica: replica.name, code, error_code: errorCode, trace_id: traceId };
    this.#log.debug(fields, 'attempt failed');
    if (code !== 'not_connected' && code !== 'loading') return;
    const state = this.#stateOf(replica);
    state.failedAttempts += 1;
    if (state.isWarned || this.#nowMs() - state.warnedAtMs < WARNING_INTERVAL_MS) return;
    state.isWarned = true;
    state.warnedAtMs = this.#nowMs();
    this.#log.warn(fields, 'replica unreachable');
  }

  /** The replica began a response. */
  answered(replica: Replica, traceId: string): void {
    const state = this.#unreachable.get(replica);
    if (state?.isWarned !== true) return;
    const fields = { replica: replica.name, failed_tries: state.failedAttempts, trace_id: traceId };
    this.#log.info(fields, 'replica back');
    state.isWarned = false;
    state.failedAttempts = 0;
  }

  #stateOf(replica: Replica): ReplicaLogState {
    let state = this.#unreachable.get(replica);
    if (state === undefined) {
      state = { failedAttempts: 0, isWarned: false, warnedAtMs: Number.NEGATIVE_INFINITY };
      this.#unreachable.set(replica, state);
    }
    return state;
  }
}
