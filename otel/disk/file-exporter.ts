import type { Clock } from '../clock.ts';
import { type Envelope, joinBatch } from '../encode/envelope.ts';
import type { Sink } from '../export/sink.ts';
import { toErrorCode } from '../system-error.ts';
import { TelemetryError } from '../telemetry-error.ts';
import type { TelemetryLog } from '../telemetry-log.ts';
import { openRecordFiles, type RecordFileSettings } from './record-files.ts';

/**
 * A Collector's otlpjsonfile receiver reads lines of up to 1 MiB (`max_log_size` of its file consumer) and makes
 * garbage of longer ones. The envelope and the names of the resource have to fit as well.
 */
const MAX_LINE_BYTES = 960 * 1024;

/**
 * Appends each batch to a file in lines, each an OTLP TracesData in JSON (OpenTelemetry specification, "OTLP File
 * Exporter"): what a Collector's otlpjsonfile receiver reads, and a valid OTLP/HTTP body. A batch is there whole
 * or not at all. Throws a TelemetryError if the files cannot be written.
 */
export async function openFileSink(
  settings: RecordFileSettings,
  envelope: Envelope,
  collaborators: { readonly log: TelemetryLog; readonly clock: Clock },
): Promise<Sink> {
  const files = await openRecordFiles(settings, collaborators).catch((error: unknown) => {
    throw new TelemetryError('cannot write the file of the records', error);
  });
  return {
    async exportBatch(spans) {
      try {
        await files.append(toFileLines(envelope, spans));
        return { kind: 'taken', rejectedCount: 0 };
      } catch (error) {
        return { kind: 'unanswered', code: toErrorCode(error, 'write_failed') };
      }
    },
    close: () => files.close(),
  };
}

/** As few lines as hold the spans; a span that is too long for one has one to itself. */
function toFileLines(envelope: Envelope, spans: readonly Uint8Array[]): Buffer {
  const lines: Buffer[] = [];
  let start = 0;
  let bytes = 0;
  for (const [index, span] of spans.entries()) {
    if (bytes + span.length > MAX_LINE_BYTES && index > start) {
      lines.push(joinBatch(envelope, spans.slice(start, index)));
      start = index;
      bytes = 0;
    }
    bytes += span.length + 1;
  }
  lines.push(joinBatch(envelope, spans.slice(start)));
  return Buffer.concat(lines.flatMap((line) => [line, LINE_FEED]));
}

const LINE_FEED = Buffer.from('\n');
