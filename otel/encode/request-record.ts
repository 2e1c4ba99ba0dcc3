/**
 * The facts of one recorded request: the contract between who fills them (src/record, src/proxy) and who
 * encodes them (otel/attributes). It has no member that could hold prompt or completion text.
 *
 * An absent member means "unknown"; a zero is a measured zero. Durations come from a monotonic clock.
 * Source: the fields and their meanings are fixed by the customer's contract, the types by docs/record.md.
 */
export interface RequestRecord {
  /** UUID, sent upstream as `X-Request-Id`. */
  readonly request_id: string;
  /** 32 lower-case hex digits, sent upstream in `traceparent`. */
  readonly trace_id: string;
  /** When the request arrived: RFC 3339 in UTC with milliseconds. */
  readonly ts: string;
  /** Whose response headers came, else the one being tried when the request ended. */
  replica?: string;
  /** At most 256 characters; absent if the body could not be read. */
  model?: string;
  /** The path, for example `/v1/chat/completions`. */
  readonly endpoint: string;
  /** At most 256 characters, without control characters. */
  tenant?: string;
  /** At most 256 characters, without control characters. */
  feature?: string;
  prompt_tokens?: number;
  completion_tokens?: number;
  cached_tokens?: number;
  /** Streams only: arrival to the first event that carries generated output, in milliseconds. */
  ttft_ms?: number;
  /** Arrival to the end of the response, in milliseconds. */
  e2e_ms: number;
  gap_p50_ms?: number;
  gap_p95_ms?: number;
  /** The status sent to the client; 499 when it left before one was sent. */
  status: number;
  /** Whether the response sent was `text/event-stream`. */
  stream: boolean;
  max_tokens?: number;
  /** Unicode code points of the request text; absent if any element of it is not a string. */
  prompt_chars?: number;
  /** 16 hex digits a block; absent when no block is complete. */
  prefix_hashes?: readonly string[];

  /** Beyond the contract: our failure code, `upstream_error` or `client_closed`. */
  error_type?: string;
  /** By choice index. */
  finish_reasons?: readonly string[];
  reasoning_tokens?: number;
  /** Waiting for a replica whose `max_inflight` was not reached, in milliseconds; absent if it did not wait. */
  queue_ms?: number;
  /** Each try at a replica, skips and repeats included; absent if none was made. */
  attempts?: number;
  /** Only when true: the response broke off before its end. */
  truncated?: true;
  /** The client's own X-Request-Id: cleaned, at most 128 characters. */
  client_request_id?: string;
  /** The engine's own numbers (vLLM `metrics`, llama.cpp `timings`), by the engine's key. */
  timings?: Readonly<Record<string, number>>;
}
