import type { RequestRecord } from '#otel/encode/request-record.ts';
import { toShownName } from '#otel/encode/shown-name.ts';
import type { CollectorHeaders } from '#otel/export/collector-headers.ts';
import type { ModelState, ReplicaState } from '#otel/metrics/replica-metrics.ts';
import { type Metrics, startMetrics } from '#otel/metrics/start-metrics.ts';
import { RecentRecords } from '#otel/queue/recent-records.ts';
import { startTelemetry, type Telemetry } from '#otel/start-telemetry.ts';
import type { FailedTokens } from '../admin/access/failed-tokens.ts';
import { type RunningFigures, startLiveFigures } from '../admin/dashboard/traffic/live-figures.ts';
import { ObservationRing } from '../admin/observations/observation-ring.ts';
import type { Certificates } from '../certificates/certificate-files.ts';
import { readLimit } from '../http/shared-limit.ts';
import type { JwtKeys } from '../jwt/jwks.ts';
import { loadSalt } from '../proxy/record/salt.ts';
import { createViaName } from '../proxy/request-loop.ts';
import type { HealthDecisions } from '../replicas/control/health/health-decisions.ts';
import { type ModelAvailability, toModelAvailabilities } from '../replicas/control/model-availability.ts';
import type { RegisteredReplica } from '../replicas/control/registry/registered-replica.ts';
import type { HealthDecision } from '../replicas/health-decision.ts';
import type { JwtAuthority } from '../serving/client-access.ts';
import { createServing, type Serving, type ServingSettings } from '../serving/serving.ts';
import type { ServingMemory } from '../serving/serving-memory.ts';
import { toMetricsSettings, toTelemetrySettings, toWorkerCount } from '../serving/settings.ts';
import { WorkerGroup } from '../serving/workers/worker-group.ts';
import type { WorkerEnd } from '../serving/workers/worker-slot.ts';
import { orStartError } from '../start-error.ts';
import type { ReplicaControl } from './compose-replicas.ts';
import type { ConfigInEffect } from './config-in-effect.ts';
import type { GatewayCollaborators } from './gateway-collaborators.ts';
import { createPeerObserver } from './observe-peers.ts';
import { createRecordObserver, type EndedObserver } from './observe-record.ts';

/** What serves clients, and what becomes of the records. */
export interface DataPlane {
  readonly serving: Serving;
  readonly telemetry: Telemetry;
  readonly metrics: Metrics;
  readonly figures: RunningFigures;
  readonly recentRecords: RecentRecords;
  readonly observations: ObservationRing;
  /** Whether the facts of requests are passed on for comparisons of replicas with their peers. At first they are not. */
  comparePeers(isOn: boolean): void;
}

interface DataPlaneSurroundings extends GatewayCollaborators {
  readonly replicas: ReplicaControl;
  readonly certificates: Certificates;
  readonly memory: ServingMemory;
  readonly version: string;
  readonly failedTokens: FailedTokens;
  /** Who may send requests; null: everyone. */
  readonly clients: ServingSettings['clients'];
  /** The keys that verify tokens; null: tokens are not accepted. */
  readonly jwtKeys: JwtKeys | null;
  readonly authority: JwtAuthority;
  readonly collectorHeaders: CollectorHeaders;
  /** Gets what stops the parts again. */
  readonly started: AsyncDisposableStack;
}

/** What GET /admin/records can return: 500 usual records take 1 MB, 500 with many prefix hashes 2 MB. */
const RECENT_RECORDS = {
  latest: { capacity: 500, capacityBytes: 8 * 1024 ** 2 },
  failures: { capacity: 200, capacityBytes: 4 * 1024 ** 2 },
};

/** Composes the data plane: its workers, the queue of their records, and what is counted. Rejects with a StartError. */
export async function composeDataPlane(
  inEffect: ConfigInEffect,
  surroundings: DataPlaneSurroundings,
): Promise<DataPlane> {
  const { config } = inEffect;
  const {
    secrets,
    collectorHeaders,
    log,
    replicas,
    certificates,
    clients,
    jwtKeys,
    authority,
    memory,
    version,
    failedTokens,
    started,
    onRecord = () => undefined,
  } = surroundings;
  const { registry, discovery, isKnownModel, healthDecisions } = replicas;
  const onHealth = (decision: HealthDecision) => healthDecisions.note(decision);
  const workerCount = toWorkerCount(config);
  const salt = await orStartError('hash salt', loadSalt(config.stateDir, secrets.hashSalt ?? undefined));

  const recentRecords = new RecentRecords(RECENT_RECORDS);
  const telemetry = await orStartError(
    'telemetry',
    startTelemetry(toTelemetrySettings(config), {
      ...{ log, version, collectorHeaders },
      onRecord(ended) {
        recentRecords.add(ended);
        observeEnded(ended);
      },
    }),
  );
  started.defer(async () => void (await telemetry.shutdown(0)));

  const workerEnds = { ended: 0, hung: 0 };
  const onWorkerEnd = (end: WorkerEnd) => {
    workerEnds.ended += 1;
    if (end === 'hung') workerEnds.hung += 1;
  };
  const metrics = await orStartError(
    'metrics',
    startMetrics(toMetricsSettings(config), {
      isKnownModel,
      replicas: () => registry.replicas.map((replica) => toReplicaState(replica, healthDecisions)),
      models: () => toModelAvailabilities(registry.replicas).map(toModelState),
      sources: () => discovery.sources,
      gateway: () => ({
        waiting: { now: registry.waiting, limit: inEffect.config.limits.queue },
        connections: readLimit(memory.connections),
        bufferedBytes: readLimit(memory.buffered),
        workerEnds,
        wrongAdminTokens: failedTokens.count,
      }),
      // A single worker is this thread.
      workers: () => (workerCount === 1 ? [] : serving.eventLoopTimes()),
      eventLoopDelays: memory.eventLoopDelays,
      exportState: () => telemetry.exportState(),
      version,
      ...{ collector: telemetry.collector, collectorHeaders, resource: telemetry.resource, log },
    }),
  );
  started.defer(async () => void (await metrics.shutdown(0)));

  const settings = {
    ...{ config, salt, clients, jwtKeys, viaName: createViaName(), memory },
    tls: certificates.listen,
  };
  const serving =
    workerCount === 1
      ? createServing({ ...settings, worker: 0 }, { consumer: telemetry.consumer, authority, onHealth, log })
      : new WorkerGroup({ ...settings, workerCount }, { authority, telemetry, onHealth, log, onWorkerEnd });
  started.defer(() => serving.close());
  const figures = startLiveFigures(() => ({
    stats: telemetry.stats(),
    inflight: registry.all.reduce((sum, { inflight }) => sum + inflight, 0),
    eventLoops: serving.eventLoopTimes(),
  }));
  started.defer(() => figures.stop());
  const observations = new ObservationRing();
  const observe = (record: Readonly<RequestRecord>) => observations.add(record);
  const observers = new Set<EndedObserver>(
    [figures.add, metrics.record, observe, onRecord].map(
      (take) =>
        ({ record }) =>
          take(record),
    ),
  );
  const observePeers = createPeerObserver(replicas.peerWatch);
  const observeEnded = createRecordObserver(observers, {
    log,
    isLogged: () => inEffect.config.log.requests,
  });
  return {
    ...{ serving, telemetry, metrics, figures, recentRecords, observations },
    comparePeers: (isOn) => void (isOn ? observers.add(observePeers) : observers.delete(observePeers)),
  };
}

function toReplicaState(
  replica: RegisteredReplica,
  decisions: Pick<HealthDecisions, 'countsOf'>,
): ReplicaState {
  const { name, inflight, config, drain, health, reachability, gpuTime } = replica;
  return {
    ...{ name, inflight, maxInflight: config.maxInflight, gpuTime },
    drained: drain.drained,
    failing: health?.state === 'failing',
    judges: health?.judges.map((judge) => ({ judge, isFailing: health.failingBy.includes(judge) })) ?? [],
    decisions: decisions.countsOf(replica),
    up: reachability.state === 'unknown' ? null : reachability.state === 'reachable',
  };
}

/** In the form that records have. */
function toModelState({ model, ...counts }: ModelAvailability): ModelState {
  return { name: toShownName(model), ...counts };
}
