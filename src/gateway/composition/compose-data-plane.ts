import type { Certificates } from '#access/certificates';
import type { JwtKeys } from '#access/jwt';
import type { LimitRows } from '#access/limits';
import { type FailedTokens, startLiveFigures } from '#admin';
import { orStartError } from '#base';
import type { GatewayJudge, PairLog } from '#comparisons';
import { startTelemetry, type Telemetry } from '#otel';
import { toShownName } from '#otel/base';
import type { CollectorHeaders } from '#otel/collector';
import { type Metrics, type ModelState, type ReplicaState, startMetrics } from '#otel/metrics';
import { toMsBeforeLastAttempt, toOutcome } from '#otel/outcome';
import { type EndedRecord, RecentRecords } from '#otel/queue';
import { createViaName } from '#proxy/entry';
import type { ReplicaControl } from '#replicas/control';
import type { RegisteredReplica } from '#replicas/registry';
import { CopyTotals } from '#shadow';
import { readLimit } from '#shared-memory';
import { type ControlCalls, PLANE_CALLS } from '../serving/calls.ts';
import { toDirectCalls } from '../serving/channel.ts';
import { createServingWorker } from '../serving/rehearsed.ts';
import type { Serving, ServingCollaborators, ServingSettings } from '../serving/serving.ts';
import { toMetricsSettings, toTelemetrySettings, toWorkerCount } from '../serving/settings.ts';
import { WorkerGroup } from '../serving/workers/worker-group.ts';
import { composeBackground } from './compose-background.ts';
import { composeJudge } from './compose-judge.ts';
import type { Composition } from './gateway-collaborators.ts';
import { createPeerObserver } from './observe-peers.ts';
import { type EndedObserver, guarded, toAccessLogFields } from './observe-record.ts';
import { orTelemetryError } from './or-telemetry-error.ts';
import { loadSalt } from './salt.ts';

/** What serves clients, and what becomes of the records. */
export interface DataPlane {
  readonly serving: Serving;
  readonly telemetry: Telemetry;
  readonly metrics: Metrics;
  readonly figures: ReturnType<typeof startLiveFigures>;
  readonly recentRecords: RecentRecords;
  readonly judge: GatewayJudge;
  readonly pairLog: PairLog;
}

interface DataPlaneSurroundings {
  readonly replicas: ReplicaControl;
  readonly certificates: Certificates;
  readonly failedTokens: FailedTokens;
  /** Who may send requests; null: everyone. */
  readonly clients: ServingSettings['clients'];
  /** The keys that verify tokens; null: tokens are not accepted. */
  readonly jwtKeys: JwtKeys | null;
  readonly authority: Pick<ControlCalls, 'refreshKeys' | 'limitRowOf' | 'tellUsage'>;
  readonly limitRows: LimitRows;
  readonly collectorHeaders: CollectorHeaders;
}

/** What GET /admin/records can return: 500 usual records take 1 MB, 500 with many prefix hashes 2 MB. */
const RECENT_RECORDS = {
  latest: { capacity: 500, capacityBytes: 8 * 1024 ** 2 },
  failures: { capacity: 200, capacityBytes: 4 * 1024 ** 2 },
};

/** Composes the data plane: its workers, the queue of their records, and what is counted. Rejects with a StartError. */
export async function composeDataPlane(
  composition: Composition,
  { replicas, certificates, clients, jwtKeys, authority, limitRows, ...surroundings }: DataPlaneSurroundings,
): Promise<DataPlane> {
  const { inEffect, collaborators, parts, events, board, memory, version } = composition;
  const { secrets, log } = collaborators;
  const { config } = inEffect;
  const { collectorHeaders, failedTokens } = surroundings;
  const { registry } = replicas;
  /** The models of the replicas that are in use now, in the form that records have. */
  let knownModels: ReadonlySet<string> = new Set();
  let replicaUrls: ReadonlyMap<string, string> = new Map();
  const workerCount = toWorkerCount(config);
  const salt = await orStartError('hash salt', loadSalt(config.stateDir, secrets.hashSalt ?? undefined));

  const telemetry = await orTelemetryError('telemetry', () =>
    startTelemetry(toTelemetrySettings(config), {
      log,
      version,
      collectorHeaders,
      onRecord: (ended) => events.emit('record', ended),
      onLoss: (loss) => events.emit('loss', loss),
    }),
  );
  parts.add('export', {
    async stop({ flushMs }, lost) {
      lost.undeliveredRecords += (await telemetry.shutdown(flushMs)).undelivered;
    },
  });
  events.on('action', (action) => telemetry.recordAdminAction(action));

  const background = await composeBackground(composition, { replicas, limitRows, telemetry });
  const settings = {
    config,
    salt,
    clients,
    jwtKeys,
    viaName: createViaName(),
    memory,
    tls: certificates.listen,
    rehearses: collaborators.rehearses ?? false,
  };
  const control: ControlCalls = {
    ...authority,
    onHealth: (decision) => replicas.noteHealth(decision),
    onBackground: (response) => background.follow(response),
    onShadow(report) {
      const { spans, pairs, skips } = report;
      copyTotals.add(report);
      for (const span of spans) {
        telemetry.recordShadow(span);
        pairLog.noteEnded(span.shadow, span.durationMs);
      }
      for (const pair of pairs) pairLog.add(pair);
      for (const { shadow, why, count } of skips) pairLog.noteSkipped(shadow, why, count);
    },
  };
  const copyTotals = new CopyTotals();
  const { ring, pairLog, judge, isOfPresent } = await composeJudge(composition, replicas, telemetry);
  const workerEnds = { ended: 0, hung: 0 };
  const serving =
    workerCount === 1
      ? createServing({ ...settings, worker: 0 }, { control, log, consumer: telemetry.consumer })
      : new WorkerGroup(
          { ...settings, workerCount },
          {
            control,
            log,
            telemetry,
            onThreadEnd: (worker) => background.workerEnded(worker),
            onWorkerEnd: (end) => {
              workerEnds.ended += 1;
              if (end === 'hung') workerEnds.hung += 1;
              board.raise({ id: 'worker_replaced', subject: '', figures: { ended: workerEnds.ended } });
            },
          },
        );
  parts.add('workers', { stop: () => serving.close() });
  inEffect.onValues((next) => serving.all.configure(next));

  const metrics = await orTelemetryError('metrics', () =>
    startMetrics(toMetricsSettings(config), {
      isKnownModel: (name) => knownModels.has(name),
      replicaUrl: (name) => replicaUrls.get(name),
      replicas: () => registry.replicas.map((replica) => toReplicaState(replica, replicas, config.currency)),
      models: () => replicas.models.map(toModelState),
      sources: () => replicas.sources,
      conditions: () => board.current,
      comparisons: () => judge.running,
      shadows: () => copyTotals.of(new Set(registry.all.map(({ name }) => name))),
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
      collector: telemetry.collector,
      collectorHeaders,
      resource: telemetry.resource,
      log,
    }),
  );
  parts.add('export', { stop: ({ flushMs }) => metrics.shutdown(flushMs) });
  const figures = startLiveFigures(inEffect.config.currency, () => ({
    stats: telemetry.stats(),
    inflight: registry.all.reduce((sum, { shadow, inflight }) => sum + (shadow === null ? inflight : 0), 0),
    gpuCounts: new Map(
      registry.all.flatMap(({ name, config }) => (config.gpuCount === null ? [] : [[name, config.gpuCount]])),
    ),
    eventLoops: serving.eventLoopTimes(),
  }));
  parts.add('workers', { stop: () => figures.stop() });
  const recentRecords = new RecentRecords(RECENT_RECORDS);
  const observers: readonly EndedObserver[] = [
    (ended) => recentRecords.add(ended),
    ({ record }) => figures.add(record),
    ({ record }) => metrics.record(record),
    ({ record }) => ring.add(record),
    createStreamObserver(replicas),
    ({ record }) => collaborators.onRecord?.(record),
    ({ record }) => {
      if (inEffect.config.log.requests) log.info(toAccessLogFields(record), 'request');
    },
  ];
  for (const observe of observers) events.on('record', guarded(observe, log));
  const observePeers = guarded(createPeerObserver(replicas, isOfPresent), log);
  replicas.connect({
    async apply(snapshot) {
      await serving.all.apply(snapshot);
      knownModels = new Set(Array.from(snapshot.cursors.keys(), (model) => toShownName(model)));
      replicaUrls = new Map(snapshot.replicas.map(({ config: { name, url } }) => [name, url]));
    },
    confirm: async () => (await serving.all.confirm()).silent,
    comparePeers: (isOn) => void events[isOn ? 'on' : 'off']('record', observePeers),
    recordAction: (action) => events.emit('action', action),
  });
  return { serving, telemetry, metrics, figures, recentRecords, judge, pairLog };
}

function toReplicaState(
  replica: RegisteredReplica,
  replicas: Pick<ReplicaControl, 'healthCountsOf'>,
  currency: string,
): ReplicaState {
  const { name, inflight, background, silence, config, drain, health, reachability, gpuTime } = replica;
  return {
    name,
    inflight,
    streams: { running: silence.running, silent: silence.count, oldestMs: silence.oldestMs ?? 0 },
    maxInflight: config.maxInflight,
    gpuTime: gpuTime && { ms: gpuTime.ms, cost: gpuTime.cost && { ...gpuTime.cost, currency } },
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

/** Creates the data plane whose single worker is this thread. */
function createServing(settings: ServingSettings, collaborators: ServingCollaborators): Serving {
  const worker = createServingWorker(settings, collaborators);
  return {
    ...worker,
    all: toDirectCalls(PLANE_CALLS, worker),
    eventLoopTimes() {
      const { active, idle } = performance.eventLoopUtilization();
      return [{ worker: settings.worker + 1, activeMs: active, idleMs: idle }];
    },
  };
}

/** Creates the function that passes the times of each stream that has ended well, from which follows when others are silent. */
export function createStreamObserver(replicas: Pick<ReplicaControl, 'learn'>): (ended: EndedRecord) => void {
  return ({ record }) => {
    if (!record.stream || toOutcome(record) !== 'success') return;
    const { model, prompt_chars, ttft_ms, gap_p95_ms } = record;
    // What went before the last attempt is not its replica's.
    const beforeMs = toMsBeforeLastAttempt(record);
    replicas.learn({
      model: model ?? '',
      promptChars: prompt_chars ?? null,
      firstTokenMs: ttft_ms === undefined ? null : Math.max(0, ttft_ms - beforeMs),
      gapMs: gap_p95_ms ?? null,
    });
  };
}
