import type { Resource } from '@opentelemetry/resources';
import { systemClock, waitAtMost } from './clock.ts';
import { openFileSink } from './disk/file-exporter.ts';
import type { RecordFileSettings } from './disk/record-files.ts';
import { openSpool } from './disk/spool.ts';
import { createEnvelope, type Envelope } from './encode/envelope.ts';
import { createOtlpSink } from './export/otlp-exporter.ts';
import { readOtlpOptions } from './export/otlp-options.ts';
import type { Sink } from './export/sink.ts';
import type { ExportState } from './metrics/gateway-metrics.ts';
import { Backlog } from './queue/backlog.ts';
import { DrainLoop } from './queue/drain-loop.ts';
import { DropLog } from './queue/drop-log.ts';
import { createExportCounters, type ExportStats } from './queue/export-stats.ts';
import { RecordIntake, type WorkerRecords } from './queue/record-intake.ts';
import { allocateLedger, type LedgerMemory, type QueueBounds, RecordLedger } from './queue/record-ledger.ts';
import type { RecordOutlet } from './queue/record-outlet.ts';
import { RecordQueue } from './queue/record-queue.ts';
import { type AdminAction, startAdminSpans } from './span/admin-spans.ts';
import { createResource } from './span/tracer.ts';
import type { TelemetryLog } from './telemetry-log.ts';

/** Writing a full queue takes a second; a disk that hangs must not keep the process. */
const SPOOL_MS = 10_000;

/** Everything about the export that is decided before the first request. Times are in milliseconds. */
export interface TelemetrySettings {
  /**
   * Where records go. `endpoint` is a base URL (`v1/traces` is appended) and wins over the OTEL_EXPORTER_OTLP_*
   * variables.
   */
  readonly sink:
    | { readonly to: 'otlp'; readonly endpoint?: string | undefined }
    | { readonly to: 'file'; readonly files: RecordFileSettings };
  /** Where records wait from one run to the next; made when it is needed. */
  readonly spoolDirectory: string;
  /** How many records wait at most, and how many bytes their spans are: those of the batch under way included. */
  readonly queue: QueueBounds;
  /** How many workers, in threads of their own, send records to the queue. Default: none, all are of this thread. */
  readonly workerCount?: number | undefined;
  /** How many records one export carries at most. */
  readonly batchSize: number;
  /** How long a batch that is not full waits, from its first record. */
  readonly intervalMs: number;
  readonly retry: { readonly initialMs: number; readonly maxMs: number };
  /** Default: OTEL_SERVICE_NAME, else `spangate`. */
  readonly serviceName?: string | undefined;
}

/** What telemetry gets from outside; `random` is 0 ≤ n < 1, by default Math.random. */
export interface TelemetryCollaborators {
  readonly log: TelemetryLog;
  /** Called with the encoded spans of every record, whatever becomes of its export. */
  readonly onLine?: ((line: Uint8Array) => void) | undefined;
  readonly random?: (() => number) | undefined;
}

/** The telemetry of the whole gateway, in its main thread: the queue and the export of all records. */
export interface Telemetry {
  /** Where the recorder of this thread puts its records. */
  readonly outlet: RecordOutlet;
  /** For the outlets of workers. */
  readonly ledger: LedgerMemory;
  /** Takes in what a worker has sent. */
  receive(worker: number, records: WorkerRecords): void;
  /** A worker has ended, and nothing of it will come any more; returns how many records are lost with it. */
  workerEnded(worker: number): number;
  /** Makes a span of an admin action, outside of the queue and the counters; none with records in files. */
  recordAdminAction(action: AdminAction): void;
  /** The counters now. */
  stats(): ExportStats;
  /** The counters, and how full the queue and the call under way are. */
  exportState(): ExportState;
  /** Where records are posted; undefined for files. */
  readonly collector: URL | undefined;
  /** What describes this process on every span. */
  readonly resource: Resource;
  /**
   * Sends what is queued until the deadline, interrupting a back-off sleep, and puts the rest into the spool;
   * idempotent. `undelivered` records could not be stored and stay in `queued`.
   */
  shutdown(deadlineMs: number): Promise<{ readonly undelivered: number }>;
}

/**
 * Starts the queue and the loop that empties it. Throws a TelemetryError with one clear line on an
 * address that is no URL, a certificate that cannot be read, a directory that cannot be written.
 */
export async function startTelemetry(
  settings: TelemetrySettings,
  { log, onLine = () => undefined, random = Math.random }: TelemetryCollaborators,
): Promise<Telemetry> {
  const resource = createResource(settings.serviceName);
  const sink = await openSink(settings.sink, createEnvelope(resource), log);
  const ledger = new RecordLedger(allocateLedger(settings.workerCount ?? 0, settings.queue));
  const queue = new RecordQueue(ledger);
  const counters = createExportCounters();
  const clock = systemClock;
  const { exportBatch } = sink;
  const spool = await openSpool(settings.spoolDirectory, log);
  const backlog = new Backlog({ spool, queue, counters });
  const dropLog = new DropLog(queue, log);
  const drainLoop = new DrainLoop(settings, {
    ...{ queue, backlog, counters, exportBatch, clock, log, dropLog, random },
  });
  const onQueued = (): void => drainLoop.notify();
  const intake = new RecordIntake({ ledger, queue, counters, clock, dropLog, onLine, onQueued });

  const { intervalMs } = settings;
  const adminSpans = startAdminSpans(sink.collector, { resource, intervalMs, clock });

  async function finish(deadlineMs: number): Promise<{ readonly undelivered: number }> {
    await Promise.all([drainLoop.stop(deadlineMs), adminSpans.shutdown(deadlineMs)]);
    sink.close();
    await waitAtMost(SPOOL_MS, backlog.putAside(), clock);
    if (counters.spooled > 0) log.info({ spooled: counters.spooled }, 'records put aside for the next start');
    return { undelivered: queue.size };
  }

  let finished: ReturnType<typeof finish> | undefined;
  return {
    outlet: intake,
    ledger: ledger.memory,
    receive: (worker, records) => intake.receive(worker, records),
    workerEnded: (worker) => intake.workerEnded(worker),
    recordAdminAction: (action) => adminSpans.record(action),
    stats: () => intake.stats(),
    exportState: () => ({
      stats: intake.stats(),
      queueCapacity: settings.queue.capacity,
      inflight: drainLoop.exportingCount,
    }),
    collector: sink.collector?.url,
    resource,
    shutdown: (deadlineMs) => {
      finished ??= finish(deadlineMs);
      return finished;
    },
  };
}

function openSink(settings: TelemetrySettings['sink'], envelope: Envelope, log: TelemetryLog): Promise<Sink> {
  return settings.to === 'file'
    ? openFileSink(settings.files, envelope, { log, clock: systemClock })
    : readOtlpOptions(settings.endpoint, log).then((options) => createOtlpSink(options, envelope));
}
