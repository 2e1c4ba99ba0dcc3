import type { Attributes } from '@opentelemetry/api';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import { ADMIN_ACTION, RECORD_FIELDS, SEMCONV } from '#otel/record/registry';
import { type Interval, type MetricDefinition, type Series, toGaugeData, toSumData } from './metric-data.ts';
import { METRICS } from './metric-table.ts';

/** What the metrics show of one replica. */
export interface ReplicaState {
  readonly name: string;
  readonly inflight: number;
  /** Responses that it goes on with after its answers, as far as is known. */
  readonly background: number;
  /** The streams that run, those of them that are silent, and for how long the oldest of these is; 0: none is. */
  readonly streams: { readonly running: number; readonly silent: number; readonly oldestMs: number };
  /** Null: no limit. */
  readonly maxInflight: number | null;
  readonly drained: boolean;
  /** Also false while health is not checked. */
  readonly failing: boolean;
  /** What may show that it fails, and whether it does; empty while health is not checked. */
  readonly judges: readonly { readonly judge: string; readonly isFailing: boolean }[];
  /** How often it was found failing or ok. */
  readonly decisions: readonly HealthDecisionCount[];
  /** Whether it answers; null while that is unknown. */
  readonly up: boolean | null;
  /** Its GPU time up to now; null without a `gpu_count`. */
  readonly gpuTime: ReplicaGpuTime | null;
}

/** How often a judge has decided so. */
export interface HealthDecisionCount {
  readonly judge: string;
  readonly verdict: string;
  readonly count: number;
}

/** The GPU time of a replica, and its cost. */
export interface ReplicaGpuTime {
  /** In milliseconds. */
  readonly ms: GpuSums;
  /** Null: it has no price. */
  readonly cost: (GpuSums & { readonly hourPrice: number; readonly currency: string }) | null;
}

/** While the replica was busy, the part of that which is in no record, and while it was not busy. */
interface GpuSums {
  readonly busy: number;
  readonly unrecorded: number;
  readonly idle: number;
}

/** How many replicas serve a model. */
export interface ModelState {
  readonly name: string;
  /** All that are known to serve it. */
  readonly known: number;
  /** Those of them that take requests and may answer. */
  readonly available: number;
}

/** Replicas report which models they serve: no more of them are shown than a metric of the SDK has series. */
const MAX_MODELS = 2000;

/** The replicas as metrics. A replica that was removed has no series. */
export function toReplicaMetrics(
  replicas: readonly ReplicaState[],
  interval: Interval,
): readonly MetricData[] {
  const toData = (
    definition: MetricDefinition<'counter' | 'updowncounter'>,
    toValue: (replica: ReplicaState) => number | boolean | null,
  ) => {
    const series = replicas.flatMap((replica): readonly Series<number>[] => {
      const value = toValue(replica);
      if (value === null) return [];
      return [{ attributes: { [RECORD_FIELDS.replica.name]: replica.name }, value: Number(value) }];
    });
    return toSumData(definition, series, interval);
  };
  const named = (replica: ReplicaState, attributes: Attributes, value: number): Series<number> => ({
    attributes: { [RECORD_FIELDS.replica.name]: replica.name, ...attributes },
    value,
  });
  const oldestStreams = replicas.map((replica) => named(replica, {}, replica.streams.oldestMs / 1000));
  const failingBy = replicas.flatMap((replica) =>
    replica.judges.map(({ judge, isFailing }) =>
      named(replica, { [ADMIN_ACTION.judge]: judge }, Number(isFailing)),
    ),
  );
  const decisions = replicas.flatMap((replica) =>
    replica.decisions.map(({ judge, verdict, count }) =>
      named(replica, { [ADMIN_ACTION.judge]: judge, [ADMIN_ACTION.verdict]: verdict }, count),
    ),
  );
  const toCosts = (toValue: (cost: NonNullable<ReplicaGpuTime['cost']>) => number) =>
    replicas.flatMap((replica): readonly Series<number>[] => {
      const cost = replica.gpuTime?.cost ?? null;
      if (cost === null) return [];
      return [named(replica, { [RECORD_FIELDS.currency.name]: cost.currency }, toValue(cost))];
    });
  return [
    toData(METRICS.replicaInflight, ({ inflight }) => inflight),
    toData(METRICS.replicaBackground, ({ background }) => background),
    toData(METRICS.replicaStreams, ({ streams }) => streams.running),
    toData(METRICS.replicaSilentStreams, ({ streams }) => streams.silent),
    toGaugeData(METRICS.replicaSilentStreamsOldest, oldestStreams, interval),
    toData(METRICS.replicaMaxInflight, ({ maxInflight }) => maxInflight),
    toData(METRICS.replicaUp, ({ up }) => up),
    toData(METRICS.replicaDrained, ({ drained }) => drained),
    toData(METRICS.replicaFailing, ({ failing }) => failing),
    toSumData(METRICS.replicaFailingBy, failingBy, interval),
    toSumData(METRICS.replicaHealthDecisions, decisions, interval),
    toData(METRICS.replicaGpu, ({ gpuTime }) => gpuTime && gpuTime.ms.busy / 1000),
    toData(METRICS.replicaGpuUnrecorded, ({ gpuTime }) => gpuTime && gpuTime.ms.unrecorded / 1000),
    toData(METRICS.replicaGpuIdle, ({ gpuTime }) => gpuTime && gpuTime.ms.idle / 1000),
    toGaugeData(
      METRICS.replicaGpuHourlyCost,
      toCosts((cost) => cost.hourPrice),
      interval,
    ),
    toSumData(
      METRICS.replicaCost,
      toCosts((cost) => cost.busy),
      interval,
    ),
    toSumData(
      METRICS.replicaCostUnrecorded,
      toCosts((cost) => cost.unrecorded),
      interval,
    ),
    toSumData(
      METRICS.replicaCostIdle,
      toCosts((cost) => cost.idle),
      interval,
    ),
  ].filter(({ dataPoints }) => dataPoints.length > 0);
}

/**
 * The models as metrics. A model that no replica is known to serve has no series. Replicas choose the names: of several
 * models whose names are shown alike, the last counts, because Prometheus refuses all metrics if a series comes twice.
 */
export function toModelMetrics(models: readonly ModelState[], interval: Interval): readonly MetricData[] {
  const byName = new Map(models.map((model) => [model.name, model]));
  const shown = [...byName.values()].slice(0, MAX_MODELS);
  const toSeries = (toValue: (model: ModelState) => number): readonly Series<number>[] =>
    shown.map((model) => ({
      attributes: { [SEMCONV.genAiRequestModel]: model.name },
      value: toValue(model),
    }));
  if (shown.length === 0) return [];
  return [
    toSumData(
      METRICS.modelReplicasKnown,
      toSeries(({ known }) => known),
      interval,
    ),
    toSumData(
      METRICS.modelReplicasAvailable,
      toSeries(({ available }) => available),
      interval,
    ),
  ];
}
