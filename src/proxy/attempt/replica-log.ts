import type { Replica } from '../../replicas/data/replica.ts';
import type { FailedTryCode } from './forward.ts';

/** Where the proxy reports what replicas do. A pino logger fits. */
export interface ReplicaLogTarget {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** A try that failed, for the log. */
export interface FailedTry {
  readonly code: FailedTryCode;
  readonly cause: unknown;
  readonly traceId: string;
}

/** A replica that refuses now and then makes no more lines than this allows: one in so many milliseconds. */
const LINES_MS = 10_000;

interface Reachability {
  /** Tries that found it unreachable since the last line that told so, or that it is back. */
  failedTries: number;
  /** Whether the last line told that it is unreachable. */
  isTold: boolean;
  toldAtMs: number;
}

/**
 * Says when a replica cannot be reached and when it can again: one line each, not one a request. Every failed try
 * is a line at level debug. Only codes: an error's message may hold an address or a client's bytes.
 */
export class ReplicaLog {
  readonly #log: ReplicaLogTarget;
  readonly #nowMs: () => number;
  /** The replicas that were ever found unreachable. */
  readonly #unreachable = new WeakMap<Replica, Reachability>();

  constructor(log: ReplicaLogTarget, nowMs: () => number = () => performance.now()) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  /** A try failed, whatever comes after it. */
  failedTry(replica: Replica, { code, cause, traceId }: FailedTry): void {
    const errorCode = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
    const fields = { replica: replica.name, code, error_code: errorCode, trace_id: traceId };
    this.#log.debug(fields, 'attempt failed');
    if (code !== 'not_connected' && code !== 'loading') return;
    const state = this.#stateOf(replica);
    state.failedTries += 1;
    if (state.isTold || this.#nowMs() - state.toldAtMs < LINES_MS) return;
    state.isTold = true;
    state.toldAtMs = this.#nowMs();
    this.#log.warn(fields, 'replica unreachable');
  }

  /** The replica began a response. */
  answered(replica: Replica, traceId: string): void {
    const state = this.#unreachable.get(replica);
    if (state?.isTold !== true) return;
    const fields = { replica: replica.name, failed_tries: state.failedTries, trace_id: traceId };
    this.#log.info(fields, 'replica back');
    state.isTold = false;
    state.failedTries = 0;
  }

  #stateOf(replica: Replica): Reachability {
    let state = this.#unreachable.get(replica);
    if (state === undefined) {
      state = { failedTries: 0, isTold: false, toldAtMs: Number.NEGATIVE_INFINITY };
      this.#unreachable.set(replica, state);
    }
    return state;
  }
}
