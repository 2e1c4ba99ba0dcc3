import type { JwtKeys } from '#access/jwt';
import type { TenantKind } from '#access/limits';
import type { ClientAnswer, UsageClient } from '#admin';
import type { Config } from '#config';
import type { PackedRecords } from '#otel/queue';
import type { BackgroundResponse } from '#proxy';
import type { ApiClientEntry } from '#proxy/entry';
import type { HealthDecision } from '#replicas/health-state';
import type { PoolSnapshot } from '#replicas/terms';
import type { ShadowReport } from '#shadow';
import type { TlsMaterial } from '#wire/client';
import type { CallTable } from './channel.ts';

/*
 * All that the control plane and the workers call of each other. A single worker is in the main thread, and its calls are
 * those of functions; of several, each has a thread, and calls cross a channel.
 *
 * A new call is a member of an interface here and a row of its table. A worker carries out its calls in serving.ts; the
 * control plane carries out its own where it is composed. No call is made per request: what must be exact at once is in
 * shared memory, records go several at a time, and a worker asks once for the keys or the row of many requests.
 */

/** How long the client of a cut request has to read the error response. */
export const CUT_NOTICE_MS = 500;

/** How long a worker may take to answer a call that needs no work. */
const ANSWER_TIMEOUT_MS = 5_000;
/** How long a reader of figures waits for a busy worker. */
const FIGURES_TIMEOUT_MS = 1_000;
/** How long a worker waits for the control plane, which may read keys for 5 s. */
const CONTROL_TIMEOUT_MS = 6_000;

/** Where clients connect. `reusePort`: several listeners with this flag share the port. */
export interface ListenOptions {
  readonly host: string;
  readonly port: number;
  readonly reusePort?: boolean;
}

/** The beginning and the end of a worker, or of all together. */
export interface LifeCalls {
  /** Starts listening and returns the port; rejects with the system's error. */
  listen(address: ListenOptions): Promise<number>;
  /** From now on /healthz answers 503, and each connection closes after the next response that begins on it. */
  startClosing(): void;
  /** Stops accepting, waits `graceMs` for requests in flight, and cuts the rest. Returns the number of cut requests. */
  finish(graceMs: number): Promise<number>;
  /** Closes all connections and threads. */
  close(): Promise<void>;
}

/** A query takes 5 s at most, and may wait for others. */
const USAGE_TIMEOUT_MS = 20_000;

/** What the control plane calls of every worker. */
export interface PlaneCalls {
  /** Applies the replicas and what they serve. Resolves when no lease is acquired by an older topology. */
  apply(topology: PoolSnapshot): Promise<void>;
  /** Applies what a reload can change. Resolves when no request begins with older settings. */
  configure(config: Config): Promise<void>;
  /** Applies other clients; null: everyone. Resolves when no request begins with the former ones. */
  useClients(clients: readonly ApiClientEntry[] | null): Promise<void>;
  /** Applies other keys of tokens. Resolves when no token is verified with the former ones. */
  useJwtKeys(keys: JwtKeys): Promise<void>;
  /** Applies other certificates of the same listener to handshakes from now on. Connections stay as they are. */
  useTls(material: TlsMaterial): Promise<void>;
  /** Resolves when the worker has finished its current tick of the event loop. */
  confirm(): Promise<void>;
  /** Has the records of all requests that have ended made and counted. Resolves with the age of the oldest other one. */
  settleRecords(): Promise<number>;
}

/** How these calls cross threads. */
export const PLANE_CALLS: CallTable<PlaneCalls> = {
  apply: 'keep',
  configure: 'keep',
  useClients: 'keep',
  useJwtKeys: 'keep',
  useTls: 'keep',
  confirm: { withinMs: () => ANSWER_TIMEOUT_MS },
  settleRecords: { withinMs: () => FIGURES_TIMEOUT_MS },
};

/** What a single worker carries out. */
export type WorkerCalls = LifeCalls & PlaneCalls;

/** How these calls cross threads. */
export const WORKER_CALLS: CallTable<WorkerCalls> = {
  ...PLANE_CALLS,
  listen: 'ask',
  startClosing: 'tell',
  finish: { withinMs: (graceMs) => graceMs + CUT_NOTICE_MS + ANSWER_TIMEOUT_MS },
  close: { withinMs: () => ANSWER_TIMEOUT_MS },
};

/** What a worker calls of the control plane. */
export interface ControlCalls {
  /** Requests show that a replica fails, or that it does not any more. */
  onHealth(decision: HealthDecision): void;
  /** A replica goes on with a response after its answer. The worker does not make the record. */
  onBackground(response: BackgroundResponse): void;
  /** What copies for shadows have shown, a few times per second at most. */
  onShadow(report: ShadowReport): void;
  /** Has the keys of tokens read again, unless that was done lately; they arrive by `useJwtKeys` before this resolves. */
  refreshKeys(): Promise<void>;
  /** The row in shared memory where the use of a tenant is counted; null: there is none at the moment. */
  limitRowOf(kind: TenantKind, tenant: string): Promise<number | null>;
  /** Answers a client that asks for its usage. `search`: the query as sent. */
  tellUsage(client: UsageClient, search: string): Promise<ClientAnswer>;
}

/** The levels of log lines that a worker writes. */
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** What a worker in a thread calls of the main thread: the control plane, its queue of records, its log. */
export interface MainThreadCalls extends ControlCalls {
  onRecords(records: PackedRecords): void;
  onLog(level: LogLevel, fields: object, message: string): void;
}

/** How these calls cross threads. */
export const MAIN_THREAD_CALLS: CallTable<MainThreadCalls> = {
  onHealth: 'tell',
  onBackground: 'tell',
  onShadow: 'tell',
  refreshKeys: { withinMs: () => CONTROL_TIMEOUT_MS },
  limitRowOf: { withinMs: () => CONTROL_TIMEOUT_MS },
  tellUsage: { withinMs: () => USAGE_TIMEOUT_MS },
  onRecords: { moves: ({ bytes }) => [bytes.buffer] },
  onLog: 'tell',
};
