import type { ExportStats } from './export-stats.ts';
import type { RecordedEndpoint, RequestRecord } from './request-record.ts';

/** Everything about telemetry that is decided before the first request. Times are in milliseconds. */
export interface TelemetrySettings {
  /**
   * Where records go. `endpoint` is a base URL (`v1/traces` is appended) and wins over the OTEL_EXPORTER_OTLP_*
   * variables; `directory` gets a `records.jsonl`.
   */
  readonly sink:
    | { readonly to: 'otlp'; readonly endpoint?: string | undefined }
    | { readonly to: 'file'; readonly directory: string };
  /** How many records wait at most, those of the batch under way included. */
  readonly queueCapacity: number;
  /** How many records one export carries at most. */
  readonly batchSize: number;
  /** How long a batch that is not full waits, from its first record. */
  readonly intervalMs: number;
  readonly retry: { readonly initialMs: number; readonly maxMs: number };
  /** What becomes of a caller's valid traceparent: a link of the span, or nothing. */
  readonly incoming: 'link' | 'ignore';
  /** Default: OTEL_SERVICE_NAME, else `spangate`. */
  readonly serviceName?: string | undefined;
}

/** Where telemetry reports its own troubles. A pino logger fits. */
export interface TelemetryLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What telemetry gets from outside: a place to complain, and chance (0 ≤ n < 1, default Math.random). */
export interface TelemetryCollaborators {
  readonly log: TelemetryLog;
  readonly random?: (() => number) | undefined;
}

/** The scheme and address by which the client reached the gateway. */
export interface HttpFacts {
  readonly scheme: 'http' | 'https';
  readonly serverAddress?: string | undefined;
  readonly serverPort?: number | undefined;
}

/** The span of one proxied request. */
export interface RequestSpan {
  /** 32 lower-case hex digits. */
  readonly traceId: string;
  /** `00-<trace>-<span>-01`, sent upstream. */
  readonly traceparent: string;
  /** Notes an attempt that failed, the first being 1, as a span event. */
  addFailedAttempt(facts: {
    readonly attempt: number;
    readonly replica: string;
    readonly code: string;
  }): void;
  /** Ends the span: the record enters the queue, or is dropped, at once. Only the first call counts. */
  end(record: Readonly<RequestRecord>, http: HttpFacts): void;
}

/** Telemetry that is running. */
export interface Telemetry {
  /** Starts the span of one request: the gateway always starts the trace, whatever the caller sent. */
  startRequestSpan(start: {
    readonly method: 'POST';
    readonly route: RecordedEndpoint;
    readonly incomingTraceparent?: string | undefined;
  }): RequestSpan;
  /** A traceparent with flags 00 and fresh ids, for requests that leave no record (GET /v1/models). */
  createUnsampledTraceparent(): string;
  /** The counters now. */
  stats(): ExportStats;
  /** Sends what is queued until the deadline, interrupting a back-off sleep; idempotent. */
  shutdown(deadlineMs: number): Promise<{ readonly undelivered: number }>;
}

/** Starts the OpenTelemetry SDK, the queue and its drain loop. Throws with one clear line on unusable settings. */
export declare function startTelemetry(
  settings: TelemetrySettings,
  collaborators: TelemetryCollaborators,
): Promise<Telemetry>;
