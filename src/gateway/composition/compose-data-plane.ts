import type { Certificates, JwtKeys, LimitRows } from '#access';
import { type FailedTokens, ObservationRing, type RunningFigures, startLiveFigures } from '#admin';
import type { BackgroundWork } from '#background';
import { orStartError } from '#base';
import { startTelemetry, type Telemetry } from '#otel';
import { toShownName } from '#otel/base';
import type { CollectorHeaders } from '#otel/export';
import { type Metrics, type ModelState, type ReplicaState, startMetrics } from '#otel/metrics';
import { RecentRecords } from '#otel/queue';
import type { RequestRecord } from '#otel/record/registry';
import { type BackgroundResponse, createViaName, loadSalt } from '#proxy';
import type { RegisteredReplica, ReplicaControl } from '#replicas/control';
import type { HealthDecision } from '#replicas/terms';
import { readLimit } from '#wire';
import type { JwtAuthority } from '../serving/client-access.ts';
import { createServing, type Serving, type ServingSettings } from '../serving/serving.ts';
import type { ServingMemory } from '../serving/serving-memory.ts';
import { toMetricsSettings, toTelemetrySettings, toWorkerCount } from '../serving/settings.ts';
import { WorkerGroup } from '../serving/workers/worker-group.ts';
import type { WorkerEnd } from '../serving/workers/worker-slot.ts';
import { composeBackground } from './compose-background.ts';
import type { ConfigInEffect } from './config-in-effect.ts';
import type { GatewayCollaborators } from './gateway-collaborators.ts';
import { KnownModels } from './known-models.ts';
import { createPeerObserver } from './observe-peers.ts';
import { createRecordObserver, type EndedObserver } from './observe-record.ts';
import { orTelemetryError } from './or-telemetry-error.ts';

/** What serves clients, and what becomes of the records. */
export interface DataPlane {
  readonly serving: Serving;
  /** What replicas go on with after their answers. */
  readonly background: BackgroundWork;
  readonly telemetry: Telemetry;
  readonly metrics: Metrics;
  readonly figures: RunningFigures;
  readonly recentRecords: RecentRecords;
  readonly observations: ObservationRing;
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
  readonly limitRows: LimitRows;
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
  const { registry } = replicas;
  const knownModels = new KnownModels();
  const onHealth = (decision: HealthDecision) => replicas.noteHealth(decision);
  const workerCount = toWorkerCount(config);
  const salt = await orStartError('hash salt', loadSalt(config.stateDir, secrets.hashSalt ?? undefined));

  const recentRecords = new RecentRecords(RECENT_RECORDS);
  const telemetry = await orTelemetryError('telemetry', () =>
    startTelemetry(toTelemetrySettings(config), {
      ...{ log, version, collectorHeaders },
      onRecord(ended) {
        recentRecords.add(ended);
        observeEnded(ended);
      },
    }),
  );
  started.defer(async () => void (await telemetry.shutdown(0)));

  const background = await composeBackground(inEffect, { ...surroundings, telemetry });
  const onBackground = (response: BackgroundResponse) => background.follow(response);
  const onThreadEnd = (worker: number) => background.workerEnded(worker);

  const workerEnds = { ended: 0, hung: 0 };
  const onWorkerEnd = (end: WorkerEnd) => {
    workerEnds.ended += 1;
    if (end === 'hung') workerEnds.hung += 1;
  };
  const metrics = await orTelemetryError('metrics', () =>
    startMetrics(toMetricsSettings(config), {
      isKnownModel: (name) => knownModels.has(name),
      replicas: () => registry.replicas.map((replica) => toReplicaState(replica, replicas)),
      models: () => replicas.models.map(toModelState),
      sources: () => replicas.sources,
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
      ? createServing(
          { ...settings, worker: 0 },
          { consumer: telemetry.consumer, authority, onHealth, onBackground, log },
        )
      : new WorkerGroup(
          { ...settings, workerCount },
          { authority, telemetry, onHealth, onBackground, onThreadEnd, log, onWorkerEnd },
        );
  started.defer(() => serving.close());
  const figures = startLiveFigures(() => ({
    stats: telemetry.stats(),
    inflight: registry.all.reduce((sum, { inflight }) => sum + inflight, 0),
    gpuCounts: new Map(
      registry.all.flatMap(({ name, config }) => (config.gpuCount === null ? [] : [[name, config.gpuCount]])),
    ),
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
  const observePeers = createPeerObserver(replicas);
  const observeEnded = createRecordObserver(observers, {
    log,
    isLogged: () => inEffect.config.log.requests,
  });
  replicas.connect({
    async apply(snapshot) {
      await serving.apply(snapshot);
      knownModels.take(snapshot);
    },
    confirm: () => serving.confirm(),
    comparePeers: (isOn) => void (isOn ? observers.add(observePeers) : observers.delete(observePeers)),
    recordAction: (action) => telemetry.recordAdminAction(action),
  });
  return { serving, background, telemetry, metrics, figures, recentRecords, observations };
}

function toReplicaState(
  replica: RegisteredReplica,
  replicas: Pick<ReplicaControl, 'healthCountsOf'>,
): ReplicaState {
  const { name, inflight, background, config, drain, health, reachability, gpuTime } = replica;
  return {
    ...{ name, inflight, maxInflight: config.maxInflight, gpuTime },
    background: background.running + background.unknown,
    drained: drain.drained,
    failing: health?.state === 'failing',
    judges: health?.judges.map((judge) => ({ judge, isFailing: health.failingBy.includes(judge) })) ?? [],
    decisions: replicas.healthCountsOf(replica),
    up: reachability.state === 'unknown' ? null : reachability.state === 'reachable',
  };
}

/** In the form that records have. */
function toModelState({ model, ...counts }: ReplicaControl['models'][number]): ModelState {
  return { name: toShownName(model), ...counts };
}
