import { performance } from 'node:perf_hooks';
import process from 'node:process';
import type { Attributes } from '@opentelemetry/api';
import type { MetricData } from '@opentelemetry/sdk-metrics';
import { SEMCONV } from '#otel/record/registry';
import type { EventLoopDelay } from './event-loop-delay.ts';
import { type Interval, type MetricDefinition, type Series, toGaugeData, toSumData } from './metric-data.ts';
import { METRICS } from './metric-table.ts';

/** How much of a resource the gateway uses, and how much it may use at most. */
export interface Usage {
  readonly now: number;
  readonly limit: number;
}

/** What the metrics show of the gateway as a whole. */
export interface GatewayState {
  /** Requests that wait for a replica. */
  readonly waiting: Usage;
  /** Connections of clients. */
  readonly connections: Usage;
  /** Bytes of request bodies in memory. */
  readonly bufferedBytes: Usage;
  readonly workerEnds: WorkerEnds;
  /** Calls of the admin API that were refused for their token. */
  readonly wrongAdminTokens: number;
}

/** How many workers ended unexpectedly. */
export interface WorkerEnds {
  /** All of them. */
  readonly ended: number;
  /** Those that were ended because they hung. */
  readonly hung: number;
}

const one = (value: number, attributes: Attributes = {}): readonly Series<number>[] => [
  { attributes, value },
];

/** What the gateway holds against its limits, and the ends of its workers, as metrics. */
export function toGatewayMetrics(
  { waiting, connections, bufferedBytes, workerEnds, wrongAdminTokens }: GatewayState,
  interval: Interval,
): readonly MetricData[] {
  const toData = (definition: MetricDefinition<'counter' | 'updowncounter'>, value: number) =>
    toSumData(definition, one(value), interval);
  return [
    toData(METRICS.waiting, waiting.now),
    toData(METRICS.waitingLimit, waiting.limit),
    toData(METRICS.connectionsOpen, connections.now),
    toData(METRICS.connectionsLimit, connections.limit),
    toData(METRICS.bufferedUsage, bufferedBytes.now),
    toData(METRICS.bufferedLimit, bufferedBytes.limit),
    toData(METRICS.workerEnded, workerEnds.ended),
    toData(METRICS.workerHung, workerEnds.hung),
    toData(METRICS.adminWrongTokens, wrongAdminTokens),
  ];
}

/** How long the event loop of a worker was active and idle since its thread started. */
interface WorkerLoopTime {
  /** From 1. */
  readonly worker: number;
  readonly activeMs: number;
  readonly idleMs: number;
}

/** What the metrics show of the process and its threads. */
export interface ProcessState {
  /** Of the gateway. */
  readonly version: string;
  /** The workers that have threads of their own. */
  readonly workers: readonly WorkerLoopTime[];
  readonly delays: readonly EventLoopDelay[];
}

/** The version of the gateway, its process and its threads as metrics, by the conventions for processes and Node.js. */
export function toProcessMetrics(
  { version, workers, delays }: ProcessState,
  interval: Interval,
): readonly MetricData[] {
  const build = { [SEMCONV.serviceVersion]: version, [SEMCONV.processRuntimeVersion]: process.versions.node };
  const { user, system } = process.cpuUsage();
  const cpuTime = Object.entries({ user, system }).map(([mode, micros]) => ({
    attributes: { [SEMCONV.cpuMode]: mode },
    value: micros / 1e6,
  }));
  return [
    toSumData(METRICS.buildInfo, one(1, build), interval),
    toGaugeData(METRICS.processUptime, one(process.uptime()), interval),
    toSumData(METRICS.processCpuTime, cpuTime, interval),
    toSumData(METRICS.processMemoryUsage, one(process.memoryUsage.rss()), interval),
    toLoopTimes(workers, interval),
    ...toLoopDelays(delays, interval),
  ];
}

function toLoopTimes(workers: readonly WorkerLoopTime[], interval: Interval): MetricData {
  const { active, idle } = performance.eventLoopUtilization();
  const threads = [
    { thread: 0, active, idle },
    ...workers.map(({ worker, activeMs, idleMs }) => ({ thread: worker, active: activeMs, idle: idleMs })),
  ];
  const series = threads.flatMap(({ thread, ...states }) =>
    Object.entries(states).map(([state, ms]) => ({
      attributes: { [SEMCONV.threadName]: toThreadName(thread), [SEMCONV.nodejsEventloopState]: state },
      value: ms / 1000,
    })),
  );
  return toSumData(METRICS.nodejsEventloopTime, series, interval);
}

function toLoopDelays(delays: readonly EventLoopDelay[], interval: Interval): readonly MetricData[] {
  if (delays.length === 0) return [];
  const toData = (definition: MetricDefinition<'gauge'>, toMs: (delay: EventLoopDelay) => number) => {
    const series = delays.map((delay) => ({
      attributes: { [SEMCONV.threadName]: toThreadName(delay.thread) },
      value: toMs(delay) / 1000,
    }));
    return toGaugeData(definition, series, interval);
  };
  return [
    toData(METRICS.nodejsEventloopDelayP50, ({ p50Ms }) => p50Ms),
    toData(METRICS.nodejsEventloopDelayP99, ({ p99Ms }) => p99Ms),
    toData(METRICS.nodejsEventloopDelayMax, ({ maxMs }) => maxMs),
  ];
}

/** The name under which the system lists the thread, too. */
function toThreadName(thread: number): string {
  return thread === 0 ? 'main' : `worker ${thread}`;
}
