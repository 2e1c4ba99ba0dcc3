import type { GatewayJudge } from '#comparisons';
import type { Condition } from '#conditions';
import type { RecordedHistory } from '#history';
import type { Log } from '#otel/base';
import type { ExportStats, RecentRecords } from '#otel/queue';
import type { AdminAction } from '#otel/span';
import type { SourceState } from '#replicas/discovery';
import type { ChangeDetails, DrainChange } from '#replicas/drain-state';
import type { Drains } from '#replicas/drains';
import type { EngineProbe } from '#replicas/probes';
import type { RegisteredReplica, ReplicaChanges, ReplicaRegistry } from '#replicas/registry';
import type { BackgroundCount } from '#replicas/terms';
import type { RolloutBoard } from '#rollout-board';
import type { SignIns } from './access/sign-ins.ts';
import type { Figures } from './dashboard/traffic/live-figures.ts';
import type { IdleWatcher } from './drains/idle-watcher.ts';

/** What the routes work with. */
export interface AdminCollaborators {
  readonly registry: ReplicaRegistry;
  /** What is wrong now, the most severe first. */
  readonly conditions: () => readonly Condition[];
  /** Whether Kubernetes or DNS answers for each service of the configuration. */
  readonly sources: () => readonly SourceState[];
  readonly drains: Drains;
  readonly idleWatcher: IdleWatcher;
  /** Null if this gateway shares its drains with no other. */
  readonly fleet: FleetControl | null;
  /** Links that sign in to the page, and their sessions. */
  readonly signIns: Pick<SignIns, 'createLink' | 'open'>;
  readonly gatewayName: string;
  /** The same after a restart with the same `state_dir`. */
  readonly instanceId: string;
  /** How long the turns of an undrained replica grow if the call does not say; 0: not at all. */
  readonly rampMs: () => number;
  readonly stats: () => ExportStats;
  /**
   * Has `stats`, `recentRecords` and the figures include all requests that have ended. Resolves with the age of the oldest
   * other one, or of the oldest response in the background, in milliseconds; 0: there is none.
   */
  readonly settleRecords: () => Promise<number>;
  readonly recentRecords: RecentRecords;
  /** The gateway's own memory. */
  readonly history: Pick<RecordedHistory, 'ask' | 'state'>;
  /** The public key of statements, in base64; null: none is configured. */
  readonly statementKey: () => string | null;
  readonly dashboard: DashboardCollaborators;
  /** All current metrics in a format of Prometheus, in pieces. */
  readonly metricsText: (format: 'text' | 'openmetrics') => AsyncIterable<string>;
  /** Asks a replica for its models if they are not configured. Call it before the replica is used again. */
  readonly refresh: (replica: RegisteredReplica) => Promise<void>;
  /** Probes a replica and notes whether it answers. Does not probe a drained one. */
  readonly ask: (replica: RegisteredReplica) => Promise<void>;
  /** Asks a replica directly whether it is ready to serve, drained or not. */
  readonly probeEngine: (replica: RegisteredReplica, hasCompletion: boolean) => Promise<EngineProbe>;
  readonly judge: Pick<GatewayJudge, 'ask'>;
  /** Makes a replica a shadow for so long, with copies of this share of its requests, and logs who did. */
  readonly beginTrial: (
    replica: RegisteredReplica,
    share: number,
    forMs: number,
    tokenName: string | null,
  ) => Promise<void>;
  /** Ends that. */
  readonly endTrial: (replica: RegisteredReplica, tokenName: string | null) => Promise<void>;
  /** The share if the call does not say. */
  readonly shadowShare: () => number;
  /** The rollouts that are known. */
  readonly rollouts: RolloutBoard;
  /** Reads the configuration again. Logs the action and reports it to `onAction`, with the name of the caller's token. */
  readonly reload: (tokenName: string | null) => Promise<ReloadOutcome>;
  /** Called for each action when it is applied, whether it could be stored or not. */
  readonly onAction: (action: AdminAction) => void;
  readonly log: Log<'info' | 'error'>;
}

/** What only the dashboard needs. */
export interface DashboardCollaborators {
  readonly figures: () => Figures;
  readonly gateway: () => GatewayIdentity;
  /** How much of its limits the gateway uses. */
  readonly usage: () => { readonly connections: Usage; readonly bufferedBytes: Usage };
  /** The most records that may wait for their export. */
  readonly queueSize: number;
  readonly exportTo: 'otlp' | 'file';
  /** A URL with `{trace_id}` in it, or null. */
  readonly traceUrlTemplate: () => string | null;
}

/** Which gateway this is. Times are RFC 3339. */
export interface GatewayIdentity {
  readonly name: string;
  /** The host name of the machine. */
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly startedAt: string;
  /** When the configuration in effect was read. */
  readonly configLoadedAt: string;
  readonly workers: number;
}

/** How much of a limit is used. */
interface Usage {
  readonly now: number;
  readonly limit: number;
}

/** What a reload of the configuration changed, or why it changed nothing. */
export type ReloadOutcome =
  | {
      readonly kind: 'reloaded';
      /** Keys of the file whose new values apply. */
      readonly changed: readonly string[];
      /** Keys of the file whose new values need a restart. */
      readonly needsRestart: readonly string[];
      readonly replicas: ReplicaChanges;
    }
  /** Nothing has changed. `file`: the configuration, as the operator named it; null: there is none. Each problem is one line without secrets. */
  | { readonly kind: 'refused'; readonly file: string | null; readonly problems: readonly string[] };

/** The fleet of gateways that share drains, as the admin API uses it. */
export interface FleetControl {
  /**
   * Drains or undrains a replica. A drain applies here at once; an undrain applies when no gateway can still rely on
   * the drain. `stored` resolves when the state is applied and on disk.
   */
  set(replica: string, drained: boolean, details: ChangeDetails): FleetDrainChange;
  /** The logical timestamp of a call that comes now. */
  newVersion(replica: string): string;
  /** The drain status of a replica in the whole fleet. `own`: what this gateway has in flight on it. */
  drainStatusOf(
    replica: string,
    own: { readonly inflight: number; readonly background: BackgroundCount },
  ): {
    readonly safeToStop: boolean | null;
    readonly inflight: number;
    readonly background: BackgroundCount;
    readonly unconfirmed: readonly string[];
  };
  gateways(): readonly FleetGateway[];
  /** Forgets the vanished gateways of a name. Returns why not if there are none. */
  forget(name: string): 'gateway_not_found' | 'gateway_alive' | 'fleet_unreachable' | null;
}

/** A drain or an undrain in a fleet, and how it propagates. */
export interface FleetDrainChange extends DrainChange {
  /** Resolves when it can be answered: it is applied here or overtaken, and the other gateways had time to read it. */
  readonly settled: Promise<void>;
  /** How far it has propagated so far. */
  propagation(): DrainPropagation;
}

/** How far a drain or an undrain has propagated through the fleet. */
export interface DrainPropagation {
  /** `local`: this gateway could not tell the others since the call. */
  readonly scope: 'fleet' | 'local';
  /** Whether a later, opposite call won, perhaps on another gateway. */
  readonly overtaken: boolean;
  /** The names of the gateways that have not confirmed the current state. */
  readonly unconfirmed: readonly string[];
}

/** A member of the fleet. */
export interface FleetGateway {
  readonly name: string;
  /** The id of its process; null for a gateway without a fleet. */
  readonly id: string | null;
  readonly isSelf: boolean;
  /** Null: the shared state is away, and nobody knows. */
  readonly isAlive: boolean | null;
  /** Null if it is not alive. */
  readonly inflight: number | null;
}
