import { randomUUID } from 'node:crypto';
import type { Resource } from '@opentelemetry/resources';
import { type Clock, type Log, systemClock, waitAtMost } from '#otel/base';
import { type CollectorHeaders, type ConfiguredCollector, readOtlpOptions } from '#otel/collector';
import { openFileExporter, openSpool, type RecordFileSettings } from '#otel/disk';
import { createOtlpExporter, type ExportHealth, type RecordExporter } from '#otel/export';
import {
  Ledger,
  LedgerOutbox,
  NO_LEDGER,
  type RecordLedger,
  type RecordLoss,
  tellLosses,
} from '#otel/ledger';
import type { ExportState } from '#otel/metrics';
import { type EncodedResourceSpans, encodeResourceSpans } from '#otel/otlp';
import {
  Drops,
  type EndedRecord,
  ExportCounters,
  ExportLoop,
  type ExportStats,
  type PackedRecords,
  type RecordConsumer,
  RecordQueue,
  RecordReceiver,
  SpoolTransfer,
} from '#otel/queue';
import {
  allocateSharedQueue,
  type QueueBounds,
  type SharedQueueMemory,
  SharedQueueState,
} from '#otel/queue/shared';
import { createResource, loadInstanceId, refuseConfigFile, warnOfVariables } from '#otel/resource';
import { type AdminAction, type ShadowSpan, startAdminSpans } from '#otel/span';

/** Writing a full queue takes a second; a disk that hangs must not keep the process from ending. */
const SPOOL_MS = 10_000;

/** Ledger spans are stored between a shutdown and the next start in a directory beside the spool. */
const LEDGER_SPOOL_SUFFIX = '-ledger';

/** The settings of the export, which are fixed before the first request. Times are in milliseconds. */
export interface TelemetrySettings {
  /** Where records go. */
  readonly exporter:
    | ({ readonly to: 'otlp' } & ConfiguredCollector)
    | { readonly to: 'file'; readonly files: RecordFileSettings };
  /** Where records are stored between a shutdown and the next start. Created when it is needed. */
  readonly spoolDirectory: string;
  /** The bounds of the queue. The current batch counts. */
  readonly queue: QueueBounds;
  /** How many workers, each in its own thread, send records to the queue. Default: 0, all records are of this thread. */
  readonly workerCount?: number | undefined;
  /** How many records one export carries at most. */
  readonly batchSize: number;
  /** How long a batch that is not full waits, counted from its first record. */
  readonly intervalMs: number;
  readonly retry: { readonly initialMs: number; readonly maxMs: number };
  /** How often the ledger says what became of the records; null: there is no ledger. */
  readonly ledgerIntervalMs?: number | null | undefined;
  /** Default: OTEL_SERVICE_NAME, else `spangate`. */
  readonly serviceName?: string | undefined;
  /** Where `service.instance.id` is kept. Default: nowhere, and it is new at each start. */
  readonly instanceFile?: string | undefined;
}

/** What telemetry works with. `random` returns 0 ≤ n < 1; default: Math.random. */
export interface TelemetryCollaborators {
  /** Of the gateway: `service.version`, and the version of the scope. Default: unknown. */
  readonly version?: string | undefined;
  readonly log: Log;
  /** Headers for the collector beside those of the variables. Default: none. */
  readonly collectorHeaders?: CollectorHeaders | undefined;
  /** Called with every record after it was queued or dropped. The encoded span is valid until the call returns. */
  readonly onRecord?: ((ended: EndedRecord) => void) | undefined;
  /** Called for each record that is not exported, as soon as that is known; after `onRecord` of later records, too. */
  readonly onLoss?: ((loss: RecordLoss) => void) | undefined;
  readonly random?: (() => number) | undefined;
}

/** What is wrong with the export. */
export interface ExportTrouble extends Pick<ExportHealth, 'outage' | 'rejection' | 'callMs'> {
  /** How full the queue is, from 0 to 1: by records or by bytes, whichever is more. */
  readonly fill: number;
  /** Whether records are dropped, because the queue is full. */
  readonly isDropping: boolean;
  /** What of the spool could not be read since the start. */
  readonly unreadable: { readonly lines: number; readonly files: number };
}

/** The telemetry of the gateway, in its main thread: the queue and the export of all records. */
export interface Telemetry {
  /** Takes the records of this thread. */
  readonly consumer: RecordConsumer;
  /** What workers share with the queue. */
  readonly queueMemory: SharedQueueMemory;
  /** Receives what a worker has sent. */
  receive(worker: number, records: PackedRecords): void;
  /** A worker begins. Returns the `instance` of its records. */
  workerStarted(worker: number): string;
  /** A worker has ended, and no more of its records will arrive. Returns how many records are lost. */
  workerEnded(worker: number): number;
  /** Records an admin action as a span, apart from the queue and the counters. Does nothing when records go to files. */
  recordAdminAction(action: AdminAction): void;
  /** The same for a copy at a shadow. */
  recordShadow(copy: ShadowSpan): void;
  /** The counters now. */
  stats(): ExportStats;
  /** The counters, the queue's capacity and the size of the current batch. */
  exportState(): ExportState;
  /** What is wrong with the export now. */
  trouble(): ExportTrouble;
  /** Where records are posted; undefined for files. */
  readonly collector: URL | undefined;
  /** The resource of every span. */
  readonly resource: Resource;
  /** The `service.instance.id` of `instanceFile`, also where the variables set another one. */
  readonly instanceId: string;
  /**
   * Sends what is queued until the deadline, without waiting for a back-off, and stores the rest in the spool. Idempotent.
   * `undelivered` records could not be stored; they still count as `queued`.
   */
  shutdown(deadlineMs: number): Promise<{ readonly undelivered: number }>;
}

/**
 * Starts the queue and the loop that empties it. Throws a TelemetryError with a one-line message for an address that is
 * no URL, a certificate that cannot be read, or a directory that cannot be written.
 */
export async function startTelemetry(
  settings: TelemetrySettings,
  {
    log,
    version,
    collectorHeaders,
    onRecord = () => undefined,
    onLoss = () => undefined,
    random = Math.random,
  }: TelemetryCollaborators,
): Promise<Telemetry> {
  warnOfVariables(log);
  const { serviceName, instanceFile } = settings;
  const instanceId = instanceFile === undefined ? randomUUID() : await loadInstanceId(instanceFile, log);
  const resource = createResource({ name: serviceName, version, instanceId });
  const exporter = await openExporter(settings.exporter, encodeResourceSpans(resource, version), {
    log,
    collectorHeaders,
  });
  const queueState = new SharedQueueState(allocateSharedQueue(settings.workerCount ?? 0, settings.queue));
  const queue = new RecordQueue(queueState);
  const counters = new ExportCounters();
  const clock = systemClock;
  const { exportBatch } = exporter;
  const spool = await openSpool(settings.spoolDirectory, log);
  const spoolTransfer = new SpoolTransfer({ spool, queue, counters });
  const drops = new Drops(queue, log);
  const ledgerOutbox = new LedgerOutbox(await openSpool(settings.spoolDirectory + LEDGER_SPOOL_SUFFIX, log));
  const ledger = tellLosses(
    startLedger(settings.ledgerIntervalMs ?? null, ledgerOutbox, { clock, log }),
    onLoss,
  );
  const exportLoop = new ExportLoop(settings, {
    queue,
    spoolTransfer,
    ledger,
    ledgerOutbox,
    counters,
    exportBatch,
    clock,
    log,
    drops,
    random,
    collector: exporter.collector?.url,
  });
  const onQueued = (): void => exportLoop.notify();
  const receiver = new RecordReceiver({
    queueState,
    queue,
    counters,
    ledger,
    clock,
    drops,
    onRecord,
    onQueued,
    instance: randomUUID(),
  });

  const { intervalMs } = settings;
  const adminSpans = startAdminSpans(exporter.collector, { resource, version, intervalMs, clock });

  async function finish(deadlineMs: number): Promise<{ readonly undelivered: number }> {
    await Promise.all([exportLoop.stop(deadlineMs), adminSpans.shutdown(deadlineMs)]);
    exporter.close();
    ledger.end();
    await waitAtMost(SPOOL_MS, Promise.all([spoolTransfer.storeQueue(), ledgerOutbox.store()]), clock);
    const { spooled } = counters.values;
    if (spooled > 0) log.info({ spooled }, 'records written to the spool for the next start');
    return { undelivered: queue.size };
  }

  let finished: ReturnType<typeof finish> | undefined;
  return {
    consumer: receiver,
    queueMemory: queueState.memory,
    receive: (worker, records) => receiver.receive(worker, records),
    workerStarted: (worker) => receiver.workerStarted(worker),
    workerEnded: (worker) => receiver.workerEnded(worker),
    recordAdminAction: (action) => adminSpans.record(action),
    recordShadow: (copy) => adminSpans.recordShadow(copy),
    stats: () => receiver.stats(),
    exportState: () => ({
      stats: receiver.stats(),
      queueCapacity: settings.queue.capacity,
      inflight: exportLoop.exportingCount,
    }),
    trouble() {
      const { outage, rejection, callMs } = exportLoop.health;
      const { fill } = queue;
      const unreadable = { lines: counters.values.unreadable, files: spool.unreadableFiles };
      return { outage, rejection, callMs, fill, isDropping: drops.isGoingOn, unreadable };
    },
    collector: exporter.collector?.url,
    resource,
    instanceId,
    shutdown: (deadlineMs) => {
      finished ??= finish(deadlineMs);
      return finished;
    },
  };
}

/** The ledger, if there is one. What waits in the outbox of earlier runs is sent with or without one. */
function startLedger(
  intervalMs: number | null,
  outbox: LedgerOutbox,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): RecordLedger {
  if (intervalMs === null) return NO_LEDGER;
  return new Ledger(intervalMs, {
    clock,
    log,
    publish: (encodedSpan) => outbox.add(encodedSpan),
    waitingCount: () => outbox.size,
    epochMs: Date.now,
  });
}

/** Opens where records go. Throws a TelemetryError. */
export async function openExporter(
  settings: TelemetrySettings['exporter'],
  resourceSpans: EncodedResourceSpans,
  { log, collectorHeaders }: Pick<TelemetryCollaborators, 'log' | 'collectorHeaders'>,
): Promise<RecordExporter> {
  refuseConfigFile();
  if (settings.to === 'file') {
    return await openFileExporter(settings.files, resourceSpans, { log, clock: systemClock });
  }
  return createOtlpExporter(
    await readOtlpOptions({ ...settings, headers: collectorHeaders }, log),
    resourceSpans,
  );
}
