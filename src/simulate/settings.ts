import { setTimeout as delay } from 'node:timers/promises';

/** The engines whose answers the replica can imitate, described in src/simulate/dialects. */
export const SIMULATED_ENGINES = ['vllm', 'llamacpp', 'openai'] as const;

/** One of {@link SIMULATED_ENGINES}. */
export type SimulatedEngine = (typeof SIMULATED_ENGINES)[number];

/**
 * Kinds of injected failures: a 500 instead of an answer; a stream whose connection is destroyed after some tokens; a
 * stream that ends in the engine's error event. Whole answers only have `status_500`.
 */
const FAULTS = ['status_500', 'cut', 'error_event'] as const;

/** One of FAULTS. */
export type Fault = (typeof FAULTS)[number];

/** Settings of a simulated replica. */
export interface SimulatedReplicaSettings {
  /** Shown in error messages and the model list only. */
  readonly name: string;
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** At least one; the first one answers if the engine ignores the model of the request (llama.cpp). */
  readonly models: readonly string[];
  readonly engine: SimulatedEngine;
  /** Mean time to the first token of a prompt without a cached prefix; 0: no wait. */
  readonly ttftMs: number;
  /** Mean gap between tokens; 0: all in one burst. */
  readonly gapMs: number;
  /** Tokens of an answer, unless the request has a lower limit. */
  readonly tokens: number;
  /** Share of requests that fail, 0 to 1. */
  readonly errorRate: number;
  /** The failures to draw from; at least one. */
  readonly faults: readonly Fault[];
  /** Seed of the pseudo-random numbers, unless those are injected. */
  readonly seed: number;
  /** Prompt tokens plus answer: longer prompts are refused, longer answers cut. */
  readonly maxModelTokens: number;
  /** Larger request bodies are refused with 413. */
  readonly maxBodyBytes: number;
  /** Blocks of 16 tokens remembered as cached prefixes; the least recently used goes first. */
  readonly maxCachedBlocks: number;
}

/** The defaults of `gateway simulate`. */
export const DEFAULT_SETTINGS: SimulatedReplicaSettings = {
  name: 'simulated',
  host: '127.0.0.1',
  port: 0,
  models: ['demo'],
  engine: 'vllm',
  ttftMs: 80,
  gapMs: 20,
  tokens: 32,
  errorRate: 0,
  faults: FAULTS,
  seed: 1,
  maxModelTokens: 1_048_576,
  maxBodyBytes: 64 * 1024 * 1024,
  maxCachedBlocks: 65_536,
};

/** The outcome of a request on a recorded endpoint, to compare with records of others. */
export interface ServedRequest {
  readonly endpoint: '/v1/chat/completions' | '/v1/completions' | '/v1/embeddings';
  /** The `X-Request-Id` and `traceparent` that arrived, or null. */
  readonly requestId: string | null;
  readonly traceparent: string | null;
  /** `client_gone` before the end; `cut` and `error_event` are injected faults; `closed` by our close(). */
  readonly ending: 'complete' | 'refused' | 'client_gone' | 'cut' | 'error_event' | 'closed';
  /** 0 when the client left before a status was sent. */
  readonly status: number;
  readonly stream: boolean;
  /** Of the whole answer; absent if the request was refused or nothing was generated. */
  readonly usage?: Usage;
  /** Tokens that were generated: fewer than `usage.completionTokens` if the client left. */
  readonly generatedTokens: number;
}

/** Token counts of one answer, or of one choice of it. */
export interface Usage {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly cachedTokens: number;
  /** Prompt tokens that entered the prefix cache with this request. */
  readonly createdCacheTokens: number;
  readonly reasoningTokens: number;
}

/** Random numbers, time, and an observer. */
export interface SimulatedReplicaCollaborators {
  /** Uniform in [0, 1). */
  readonly random: () => number;
  /** Milliseconds since the epoch; monotonic. */
  readonly now: () => number;
  /** Rejects as soon as `signal` aborts. */
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Called once per request on a recorded endpoint, when it has ended. */
  readonly onServed: (served: ServedRequest) => void;
}

/** Real time, and random numbers that `seed` determines. */
export function defaultCollaborators(seed: number): SimulatedReplicaCollaborators {
  return {
    random: createRandom(seed),
    now: () => performance.timeOrigin + performance.now(),
    sleep: (ms, signal) => delay(ms, undefined, { signal }),
    onServed: () => {},
  };
}

/**
 * Uniform numbers in [0, 1), the same for the same seed.
 *
 * mulberry32 (public domain, Tommy Ettinger): 32 bits of state are plenty for jitter.
 */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
