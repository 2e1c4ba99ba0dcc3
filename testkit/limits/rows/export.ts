import { inFile, inKey, type Limit, testedBy } from '../limit.ts';

/** Records on their way, files of records, metrics. */
export const EXPORT: readonly Limit[] = [
  {
    what: 'records that wait for the collector',
    source: inKey('export.queue_size'),
    past: 'the new record is `dropped`; no request waits or fails',
    proof: testedBy(
      'test/otel/queue/record-queue.test.ts',
      'a full queue refuses a new record and keeps the others',
    ),
  },
  {
    what: 'their bytes',
    source: inKey('export.queue_bytes'),
    unit: 'bytes',
    past: 'likewise',
    proof: testedBy(
      'test/otel/queue/record-queue.test.ts',
      'a record that is too large for the remaining capacity is refused, a smaller one is not',
    ),
  },
  {
    what: 'records in one export call',
    source: inKey('export.batch_size'),
    past: 'the next call has the rest',
    proof: testedBy(
      'test/otel/queue/export-loop/export-loop.test.ts',
      'at once when it is full, the rest when its own first record has waited',
    ),
  },
  {
    what: 'bytes in one export call; fewer after a 413',
    source: inFile('otel/queue/export-loop/batch-limit.ts', 'MAX_BATCH_BYTES'),
    past: 'the next call has the rest',
    proof: testedBy(
      'test/otel/queue/export-loop/export-loop.test.ts',
      'large records are sent as soon as they fill 4 MiB, and no call is larger',
    ),
  },
  {
    what: 'an answer of the collector',
    source: inFile('otel/export/otlp-exporter.ts', 'MAX_RESPONSE_BYTES'),
    past: 'the rest is not read',
    proof: testedBy('test/otel/export/otlp-exporter.test.ts', 'at most 4 MiB of an answer are read'),
  },
  {
    what: "a collector's `Retry-After`",
    source: inFile('otel/export/retry.ts', 'MAX_RETRY_AFTER_MS'),
    past: 'the next call comes soon after',
    proof: testedBy('test/otel/export/retry.test.ts', "{ header: '3600', ms: 60_000 }"),
  },
  {
    what: "a collector's message in the log",
    source: inFile('otel/export/collector-answer.ts', 'MAX_MESSAGE_CHARS'),
    past: 'it is cut',
    proof: testedBy(
      'test/otel/export/collector-answer.test.ts',
      'is the message of its status, at most 256 characters',
    ),
  },
  {
    what: 'the spool in state_dir',
    source: inFile('otel/disk/spool.ts', 'MAX_TOTAL_BYTES'),
    past: 'the records are not stored; one log line says how many',
    proof: testedBy(
      'test/otel/disk/spool.test.ts',
      'because it is full, stores what there is room for and logs what is lost',
    ),
  },
  {
    what: 'a file of records before it is renamed',
    source: inKey('export.file.max_size'),
    unit: 'bytes',
    past: 'a new file begins',
    proof: testedBy('test/otel/disk/file-exporter.test.ts', 'before a batch would make it too large'),
  },
  {
    what: 'all files of records',
    source: inKey('export.file.max_total'),
    unit: 'bytes',
    past: 'the oldest are deleted',
    proof: testedBy(
      'test/otel/disk/file-exporter.test.ts',
      'so that all files together stay within the bound',
    ),
  },
  {
    what: 'a line in a file of records',
    source: inFile('otel/disk/file-exporter.ts', 'MAX_LINE_BYTES'),
    past: 'the next line has the rest',
    proof: testedBy(
      'test/otel/disk/file-exporter.test.ts',
      'a batch that is too long for one line of a Collector becomes several lines',
    ),
  },
  {
    what: 'tenants, and models that no replica lists, with their own series',
    source: inKey('metrics.max_names'),
    past: 'further ones are `_OTHER`',
    proof: testedBy(
      'test/otel/metrics/record-metrics.test.ts',
      'with 10,000 names that a replica accepts: only the first few have their own series',
    ),
  },
  {
    what: 'series of a metric other than `gateway.attempts`',
    source: inFile('otel/metrics/metric.ts', 'MAX_SERIES'),
    past: 'one series has the rest',
    proof: testedBy(
      'test/otel/metrics/record-metrics.test.ts',
      'with combinations: beyond 2,000 series, a metric has one for the rest',
    ),
  },
  {
    what: 'series of `gateway.attempts`',
    source: inFile('otel/metrics/record-series.ts', 'MAX_ATTEMPT_SERIES'),
    past: 'one series has the rest',
    proof: testedBy(
      'test/otel/metrics/record-metrics.test.ts',
      'nor replicas that come and go those of attempts: beyond 8,192 series, one has the rest',
    ),
  },
  {
    what: 'the name of the subject of a condition',
    source: inFile('src/conditions/board.ts', 'MAX_SUBJECT_CHARS'),
    past: 'the rest is cut off',
    proof: testedBy(
      'test/conditions/board.test.ts',
      'shows names and texts as harmless as they can be made, and ends what was raised by the name that it has',
    ),
  },
  {
    what: 'a text among the figures of a condition',
    source: inFile('src/conditions/board.ts', 'MAX_TEXT_CHARS'),
    past: 'the rest is cut off',
    proof: testedBy(
      'test/conditions/board.test.ts',
      'shows names and texts as harmless as they can be made, and ends what was raised by the name that it has',
    ),
  },
  {
    what: 'subjects of one condition',
    source: inFile('src/conditions/board.ts', 'MAX_SUBJECTS'),
    past: 'further ones are `_OTHER`',
    proof: testedBy('test/conditions/board.test.ts', 'counts the subjects beyond the bound under one name'),
  },
  {
    what: 'records covered by one ledger span',
    source: inFile('otel/ledger/ledger-book.ts', 'MAX_RECORDS'),
    past: 'the next span begins',
    proof: testedBy('test/otel/ledger/numbered-ledger.test.ts', 'says sooner what would become too long'),
  },
];
