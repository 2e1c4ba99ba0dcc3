import { explainFileCode } from '#base';
import type { Finding, Producer } from '#conditions';
import type { ExportTrouble } from '#otel';
import type { DataPlane } from '../composition/compose-data-plane.ts';
import type { Composition } from '../composition/gateway-collaborators.ts';
import { toTelemetrySettings } from '../serving/settings.ts';
import { Growth } from './growth.ts';

/** How the export is doing, and the counters of its records. */
export interface ExportSources {
  readonly trouble: () => ExportTrouble;
  readonly state: () => {
    readonly stats: { readonly dropped: number; readonly queued: number };
    readonly queueCapacity: number;
  };
  /** The directory in which records are written; null: a collector gets them. */
  readonly recordDirectory: string | null;
  readonly spoolDirectory: string;
  /** Monotonic milliseconds. */
  readonly nowMs: () => number;
}

const SLOW_MS = 5_000;
/** A queue that is less full has time. */
const FILLING_FROM = 0.5;
/** What is damaged in the spool is told for a day after the last file that was read. */
const UNREADABLE_LASTS_MS = 24 * 3_600_000;

/** Tells the board of the way of the records. Where they go is fixed before the first request. */
export function addExportConditions(
  { board, inEffect }: Composition,
  { dataPlane: { telemetry } }: { readonly dataPlane: Pick<DataPlane, 'telemetry'> },
): void {
  const { exporter, spoolDirectory } = toTelemetrySettings(inEffect.config);
  const sources = {
    trouble: () => telemetry.trouble(),
    state: () => telemetry.exportState(),
    recordDirectory: exporter.to === 'file' ? exporter.files.directory : null,
    spoolDirectory,
    nowMs: () => performance.now(),
  };
  board.add(createExportProducer(sources));
  board.add(createSpoolProducer(sources));
}

/** What is wrong with the way of the records. */
export function createExportProducer(sources: ExportSources): Producer {
  const rate = new FillRate(sources.nowMs);
  const [drops, rejections] = [new Growth(), new Growth()];
  return function* (): Generator<Finding> {
    const { stats, queueCapacity: capacity } = sources.state();
    const trouble = sources.trouble();
    const { queued, dropped } = stats;
    const leftMs = rate.untilFull(trouble.fill);
    if (trouble.fill > FILLING_FROM && leftMs !== null) {
      yield { id: 'queue_filling', subject: '', figures: { queued, capacity, left: leftMs / 1_000 } };
    }
    // Either may begin and end between two looks.
    const [hasDropped, hasRejected] = [
      drops.hasGrown(dropped),
      rejections.hasGrown(trouble.rejection?.rejected ?? 0),
    ];
    if (hasDropped || trouble.isDropping) yield { id: 'records_dropped', subject: '', figures: { dropped } };
    if (trouble.rejection !== null && (hasRejected || trouble.rejection.isGoingOn)) {
      const { message, isGoingOn: _, ...figures } = trouble.rejection;
      yield { id: 'records_rejected', subject: '', figures: { ...figures, collector_message: message } };
    }
    yield* callFindings(trouble, { queued, recordDirectory: sources.recordDirectory });
  };
}

/** What of the spool could not be read at the start. */
export function createSpoolProducer({
  trouble,
  spoolDirectory: subject,
  nowMs,
}: Pick<ExportSources, 'trouble' | 'spoolDirectory' | 'nowMs'>): Producer {
  const growth = new Growth();
  let lastMs = Number.NEGATIVE_INFINITY;
  return function* (): Generator<Finding> {
    const { lines, files } = trouble().unreadable;
    if (growth.hasGrown(lines + files)) lastMs = nowMs();
    if (nowMs() - lastMs < UNREADABLE_LASTS_MS)
      yield { id: 'spool_unreadable', subject, figures: { lines, files } };
  };
}

function* callFindings(
  { outage, callMs }: ExportTrouble,
  { queued, recordDirectory }: { readonly queued: number; readonly recordDirectory: string | null },
): Generator<Finding> {
  if (outage === null) {
    if (callMs <= SLOW_MS) return;
    yield { id: 'collector_slow', subject: '', figures: { taken: callMs / 1_000, queued } };
    return;
  }
  const { reason, collector, advice, failedCalls } = outage;
  const figures = { reason, queued, failed_calls: failedCalls };
  if (recordDirectory === null) {
    yield { id: 'collector_away', subject: '', figures: { ...figures, collector, advice } };
    return;
  }
  const toFile = { ...figures, reason: explainFileCode(reason) };
  yield { id: 'records_not_written', subject: recordDirectory, figures: toFile };
}

/** Over which time the rate is measured, and the least time between two measurements. */
const WINDOW_MS = 5_000;
const INTERVAL_MS = 500;

/** How fast something fills up. */
export class FillRate {
  readonly #nowMs: () => number;
  /** Oldest first; the oldest is about a window old. */
  #samples: { readonly atMs: number; readonly fill: number }[] = [];

  /** `nowMs`: monotonic milliseconds. */
  constructor(nowMs: () => number) {
    this.#nowMs = nowMs;
  }

  /** In how many milliseconds it is full, if it goes on as in the last seconds. Null: it does not fill up. */
  untilFull(fill: number): number | null {
    const atMs = this.#nowMs();
    if (atMs - (this.#samples.at(-1)?.atMs ?? Number.NEGATIVE_INFINITY) >= INTERVAL_MS)
      this.#samples.push({ atMs, fill });
    while (atMs - (this.#samples[1]?.atMs ?? atMs) >= WINDOW_MS) this.#samples.shift();
    const oldest = this.#samples[0];
    if (oldest === undefined || fill <= oldest.fill || fill >= 1) return null;
    return ((1 - fill) / (fill - oldest.fill)) * (atMs - oldest.atMs);
  }
}
