import { type Clock, type Log, TelemetryError, toErrorCode } from '#otel/base';
import { convertSpans, type RecordExporter } from '#otel/export';
import { type EncodedResourceSpans, joinJsonBatch } from '#otel/otlp';
import { openRecordFiles, type RecordFileSettings } from './record-files.ts';

/**
 * A Collector's otlpjsonfile receiver reads lines of up to 1 MiB (`max_log_size` of its file consumer) and corrupts
 * longer ones. The ResourceSpans around the spans must fit as well.
 */
const MAX_LINE_BYTES = 960 * 1024;

const LINE_FEED = Buffer.from('\n');

/**
 * Appends each batch to a file as lines, each an OTLP TracesData in JSON (OpenTelemetry specification, "OTLP File
 * Exporter"): what a Collector's otlpjsonfile receiver reads, and a valid OTLP/HTTP body. A batch is written whole or
 * not at all. Throws a TelemetryError if the files cannot be written.
 */
export async function openFileExporter(
  settings: RecordFileSettings,
  resourceSpans: EncodedResourceSpans,
  collaborators: { readonly log: Log; readonly clock: Clock },
): Promise<RecordExporter> {
  const files = await openRecordFiles(settings, collaborators).catch((error: unknown) => {
    throw new TelemetryError('cannot write the file of the records', error);
  });
  return {
    async exportBatch(encodedSpans, signal) {
      const { spans, malformedCount } = await convertSpans(encodedSpans);
      if (signal.aborted) return { kind: 'unanswered', code: 'aborted' };
      try {
        if (spans.length > 0) await files.append(toLines(resourceSpans, spans));
        return { kind: 'taken', rejectedCount: malformedCount };
      } catch (error) {
        return { kind: 'unanswered', code: toErrorCode(error, 'write_failed') };
      }
    },
    close: () => files.close(),
  };
}

/** As few lines as hold the spans. A span that is too long for that gets its own line. */
function toLines(resourceSpans: EncodedResourceSpans, spans: readonly Uint8Array[]): Buffer {
  const lines: Buffer[] = [];
  let start = 0;
  let bytes = 0;
  for (const [index, span] of spans.entries()) {
    if (bytes + span.length > MAX_LINE_BYTES && index > start) {
      lines.push(joinJsonBatch(resourceSpans, spans.slice(start, index)));
      start = index;
      bytes = 0;
    }
    bytes += span.length + 1;
  }
  lines.push(joinJsonBatch(resourceSpans, spans.slice(start)));
  return Buffer.concat(lines.flatMap((line) => [line, LINE_FEED]));
}
