import type { JwksSource } from '#access/jwt';
import type { LimitRows } from '#access/limits';
import type { FailedTokens } from '#admin';
import type { ConditionBoard, ConditionId, Finding, Producer } from '#conditions';
import { hasHealthChecks } from '#config';
import type { Fleet } from '#fleet';
import { toShownName } from '#otel/base';
import type { ReplicaControl } from '#replicas/control';
import type { RegisteredReplica, ReplicaRegistry } from '#replicas/registry';
import { hasVanished, type KnownRollout, type RolloutBoard } from '#rollout-board';
import type { Composition } from '../composition/gateway-collaborators.ts';
import { guarded } from '../composition/observe-record.ts';
import { createLimitProducer } from './limit-conditions.ts';
import { RecentCount } from './recent-count.ts';
import { TrafficWatch } from './traffic-conditions.ts';

/** What has to do with requests, and with those who serve and operate together. */
export interface FlowSurroundings {
  readonly replicas: ReplicaControl;
  /** Null: this gateway shares its state with no other one. */
  readonly fleet: Fleet | null;
  readonly jwksSource: JwksSource;
  readonly failedTokens: FailedTokens;
  readonly limitRows: LimitRows;
  readonly rollouts: RolloutBoard;
}

const nowMs = () => performance.now();

/** Tells the board of the requests, and of the gateways, keys, drains and rollouts behind them. */
export function addFlowConditions(composition: Composition, surroundings: FlowSurroundings): void {
  const { board, events, inEffect, collaborators } = composition;
  const { replicas, fleet, jwksSource, failedTokens, limitRows, rollouts } = surroundings;
  const { registry } = replicas;
  const hasHealth = () => hasHealthChecks(inEffect.config.health);
  const traffic = new TrafficWatch(registry, nowMs);
  events.on(
    'record',
    guarded(({ record }) => traffic.note(record), collaborators.log),
  );
  board.add(traffic.produce);
  board.add(createLimitProducer(limitRows, () => registry.silentHolders(), nowMs));
  board.add(createBacklogProducer(registry));
  board.add(createDrainProducer(registry));
  if (fleet !== null) board.add(createFleetProducer({ fleet, registry }));
  board.add(createJwksProducer(jwksSource));
  board.add(createAdminProducer(failedTokens, nowMs));
  const isServing = (name: string) => registry.find(name)?.shadow == null;
  board.add(createHealthProducer(hasHealth, isServing, board));
  board.add(createRolloutProducer(rollouts, { nowMs, epochMs: Date.now }));
}

/** Keys of tokens that cannot be read. */
function createJwksProducer(source: JwksSource): Producer {
  return () => {
    const { problem } = source;
    if (problem === null) return [];
    const id = problem.hasKeys ? 'jwks_failing' : 'jwks_missing';
    return [{ id, subject: problem.source, figures: { reason: problem.text } }];
  };
}

/** Fewer in a minute are somebody who mistypes. */
const MANY = 10;

/** For so long after the last one it is told. */
const LASTS_SECONDS = 10;

/** Many calls of the admin API with wrong tokens. `nowMs`: monotonic milliseconds. */
export function createAdminProducer(
  failedTokens: Pick<FailedTokens, 'count'>,
  nowMs: () => number = () => performance.now(),
): Producer {
  const recent = new RecentCount(nowMs);
  let seen = 0;
  return () => {
    const { count } = failedTokens;
    if (count > seen) recent.add(count - seen);
    seen = count;
    const refused = recent.inLast(60);
    if (refused < MANY || recent.inLast(LASTS_SECONDS) === 0) return [];
    return [{ id: 'admin_tokens_refused', subject: '', figures: { refused } }];
  };
}

/** A drain that is older may be forgotten. */
const OLD_MS = 3_600_000;

/** Replicas that have been drained for long. */
export function createDrainProducer(
  registry: Pick<ReplicaRegistry, 'replicas'>,
  epochMs: () => number = Date.now,
): Producer {
  return function* (): Generator<Finding> {
    for (const { name, drain, isRemoving } of registry.replicas) {
      if (!drain.drained || isRemoving) continue;
      const drainedMs = Date.parse(drain.since ?? '');
      const ageMs = epochMs() - drainedMs;
      // Without a time it is not known how old it is.
      if (!(ageMs >= OLD_MS)) continue;
      const reason = drain.reason === null ? '' : `: ${toShownName(drain.reason)}`;
      const figures = { age: Math.floor(ageMs / 1_000), reason };
      yield { id: 'drain_old', subject: name, figures, sinceEpochMs: drainedMs + OLD_MS };
    }
  };
}

/** How far above the median of its peers is far. */
const FAR = { times: 4, more: 16 } as const;

/** Replicas that have far more requests in flight than those of the same models. */
export function createBacklogProducer(registry: Pick<ReplicaRegistry, 'replicas'>): Producer {
  return function* (): Generator<Finding> {
    const serving = registry.replicas.filter(getsItsTurns);
    if (!serving.some(({ inflight }) => inflight >= FAR.more)) return;
    for (const alike of Map.groupBy(serving, toKind).values()) yield* ofAlike(alike);
  };
}

function* ofAlike(alike: readonly RegisteredReplica[]): Generator<Finding> {
  const counts = alike.map(({ name, inflight }) => ({ name, inflight }));
  const sorted = counts.map(({ inflight }) => inflight).toSorted((a, b) => a - b);
  for (const { name: subject, inflight } of counts) {
    if (inflight < FAR.more) continue;
    const peers = medianOfOthers(sorted, inflight);
    if (peers === null || inflight < FAR.times * peers || inflight < peers + FAR.more) continue;
    yield { id: 'replica_backlog', subject, figures: { inflight, peers } };
  }
}

/** One that is skipped, tried last or warms up has less in flight than the others, which says nothing about them. */
function getsItsTurns({ drain, reachability, health, ramp, shadow }: RegisteredReplica): boolean {
  const { reason } = reachability;
  return shadow === null && !drain.drained && reason === null && health?.state !== 'failing' && ramp === null;
}

/** Those with the same models and the same GPUs are of one kind. */
function toKind({ models, config }: RegisteredReplica): string {
  return JSON.stringify([models?.toSorted() ?? null, config.gpuModel, config.gpuCount, config.maxInflight]);
}

/** The median of all but one; of two in the middle the greater one. Null: there is no other. */
function medianOfOthers(sorted: readonly number[], own: number): number | null {
  const middle = Math.floor((sorted.length - 1) / 2);
  return (middle < sorted.indexOf(own) ? sorted[middle] : sorted[middle + 1]) ?? null;
}

/** What health checks would have requests avoid. */
const TROUBLES: ReadonlySet<ConditionId> = new Set<ConditionId>([
  'replica_unreachable',
  'replica_tls_failed',
  'replica_wrong_server',
  'replica_attempts_failing',
  'replica_streams_silent',
]);

/** Replicas in trouble while nothing looks after them. */
function createHealthProducer(
  hasHealth: () => boolean,
  /** Whether health checks would change anything for this replica: no client's request goes to a shadow. */
  isServing: (name: string) => boolean,
  board: Pick<ConditionBoard, 'current'>,
): Producer {
  return () => {
    if (hasHealth()) return [];
    const names = new Set(
      board.current.flatMap(({ id, subject }) => (TROUBLES.has(id) && isServing(subject) ? subject : [])),
    );
    if (names.size === 0) return [];
    return [{ id: 'health_checks_off', subject: '', figures: { replicas: toList([...names].sort(), 3) } }];
  };
}

/** How long a rollout that stopped is told. */
const TOLD_MS = 3_600_000;

interface Clocks {
  readonly nowMs: () => number;
  readonly epochMs: () => number;
}

/** Tells of rollouts that stopped in the middle, or whose driver has vanished. */
export function createRolloutProducer(
  board: Pick<RolloutBoard, 'rollouts'>,
  { nowMs, epochMs }: Clocks,
): Producer {
  return () => {
    // A replica belongs to the latest rollout that has it.
    const taken = new Set<string>();
    return board.rollouts.flatMap((known) => {
      const names = known.facts.replicas.map(({ name }) => name);
      const isReplaced = names.some((name) => taken.has(name));
      for (const name of names) taken.add(name);
      const reason = isReplaced ? null : findReason(known, nowMs(), epochMs());
      if (reason === null || !hasBegun(known)) return [];
      return [{ id: 'rollout_stopped', subject: toSubject(known), figures: { reason } } as const];
    });
  };
}

/** Why it is told; null: it is not. */
function findReason(known: KnownRollout, nowMs: number, epochMs: number): string | null {
  const { state, problem, sentence, ended_at, driver } = known.facts;
  if (hasVanished(known, nowMs)) {
    const { user, host } = driver;
    return nowMs - known.heardMs < TOLD_MS ? `${user}@${host}, who drives it, is not heard any more` : null;
  }
  const agoMs = epochMs - Date.parse(ended_at ?? '');
  return state === 'stopped' && agoMs < TOLD_MS ? (problem?.sentence ?? sentence) : null;
}

function hasBegun({ facts }: KnownRollout): boolean {
  return facts.replicas.some(({ stage }) => stage !== 'waiting');
}

/** The replica that it stopped at, or that it was at work on. */
function toSubject({ facts: { id, problem, replicas } }: KnownRollout): string {
  const underWay = replicas.find(
    ({ stage }) => !['waiting', 'done', 'skipped', 'rolled_back'].includes(stage),
  );
  return problem?.replica ?? underWay?.name ?? `rollout-${id}`;
}

interface FleetSurroundings {
  readonly fleet: Pick<Fleet, 'failure' | 'gateways' | 'drainStatusOf'>;
  readonly registry: Pick<ReplicaRegistry, 'replicas'>;
}

/** What is wrong between gateways that share state. While Redis is away, nothing is known of the others. */
export function createFleetProducer({ fleet, registry }: FleetSurroundings): Producer {
  return function* (): Generator<Finding> {
    const { failure } = fleet;
    if (failure !== null) {
      yield { id: 'redis_away', subject: '', figures: { reason: failure } };
      return;
    }
    const versions = toVersions(fleet.gateways());
    if (versions.size > 1) {
      const shown = [...versions].map(([version, names]) => `${version} (${names.join(', ')})`).join(', ');
      yield { id: 'gateway_versions_differ', subject: '', figures: { versions: shown } };
    }
    for (const replica of registry.replicas) {
      if (!replica.hasDrainedName) continue;
      const { inflight, background } = replica;
      const { unconfirmed } = fleet.drainStatusOf(replica.name, { inflight, background });
      if (unconfirmed.length === 0) continue;
      const gateways = toList(
        unconfirmed.map((name) => toShownName(name)),
        5,
      );
      yield { id: 'drains_not_spread', subject: replica.name, figures: { gateways } };
    }
  };
}

/** The names of the gateways that tell their version, by it. */
function toVersions(gateways: ReturnType<Fleet['gateways']>): ReadonlyMap<string, readonly string[]> {
  const versions = new Map<string, string[]>();
  for (const { name, version } of gateways) {
    if (version !== null) versions.set(version, [...(versions.get(version) ?? []), toShownName(name)]);
  }
  return versions;
}

function toList(names: readonly string[], most: number): string {
  const rest = names.length - most;
  const listed = names.slice(0, most).join(', ');
  return rest > 0 ? `${listed} and ${rest} more` : listed;
}
