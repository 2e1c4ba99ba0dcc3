import type { Silence } from '#replicas/silence';

/** How fast a simulated engine is, and in which order it works. */
export interface EngineSpeed {
  readonly promptTokensPerSecond: number;
  /** Seconds between two tokens of a response, if it is the only one. */
  readonly gapS: number;
  /** How many requests it works on at a time. The others wait in it. */
  readonly slots: number;
  /** Whether responses stand still while it reads a prompt, as in llama.cpp and engines without chunked prefill. */
  readonly readsPromptsAlone: boolean;
}

/** A request to a simulated engine. */
export interface EngineRequest {
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly isStream: boolean;
  /** The part of the tokens, from the end, that come all at once: a call of a tool that the engine parses first. */
  readonly heldShare: number;
}

/** A stream that runs on a simulated engine, as UpstreamConnections shows one. */
export interface SimulatedStream {
  readonly stream: { readonly kind: number; readonly size: number; readonly holds: readonly number[] };
  readonly silentSinceMs: number;
  readonly sentMs: number;
  readonly isAnswering: boolean;
}

/** A stream that has ended, as its record tells it. */
export interface EndedSimulatedStream {
  readonly promptChars: number;
  readonly firstTokenMs: number;
  readonly gapMs: number;
}

interface Work {
  readonly request: EngineRequest;
  readonly sentMs: number;
  /** It gets no further byte. */
  readonly isStuck: boolean;
  firstTokenMs: number | null;
  promptLeft: number;
  completionLeft: number;
  /** When its last byte came; before that, when it was sent. */
  silentSinceMs: number;
  isAnswering: boolean;
}

const CHARS_PER_TOKEN = 4;
/** All streams are of one kind. */
export const STREAM_KIND = 2;

/** How much slower each further response makes all. */
const SLOWER_BY_ONE = 0.02;
/** How much of its time an engine with chunked prefill leaves for responses while it reads a prompt. */
const SHARED_WITH_PROMPTS = 0.7;

/** An inference server in virtual time, seen from its connections: when which of them were silent. */
export class SimulatedEngine {
  readonly #speed: EngineSpeed;
  #work: Work[] = [];
  #endedMs: number | null = null;
  #endedSentMs: number | null = null;
  /** While it is, no byte comes from it. */
  isFrozen = false;
  /** Whether the next request is forgotten when its answer has begun. */
  sticksNext = false;
  /** Called with each stream that has ended. */
  onStreamEnd: (ended: EndedSimulatedStream) => void = () => undefined;

  constructor(speed: EngineSpeed) {
    this.#speed = speed;
  }

  get inflight(): number {
    return this.#work.length;
  }

  send(request: EngineRequest, nowMs: number): void {
    const { promptTokens: promptLeft, completionTokens: completionLeft } = request;
    const { sticksNext: isStuck } = this;
    this.sticksNext = false;
    this.#work.push({
      request,
      promptLeft,
      completionLeft,
      isStuck,
      sentMs: nowMs,
      firstTokenMs: null,
      silentSinceMs: nowMs,
      isAnswering: false,
    });
  }

  /** Works for so long, up to now. */
  work(nowMs: number, seconds: number): void {
    if (this.isFrozen || this.#work.length === 0) return;
    const { promptTokensPerSecond, readsPromptsAlone, slots, gapS } = this.#speed;
    const running = this.#work.slice(0, slots);
    let leftS = seconds;
    for (const work of running) {
      if (work.promptLeft === 0 || leftS <= 0) continue;
      const usedS = Math.min(leftS, work.promptLeft / promptTokensPerSecond);
      work.promptLeft = usedS === leftS ? work.promptLeft - usedS * promptTokensPerSecond : 0;
      leftS -= usedS;
    }
    const sharedS = leftS < seconds ? seconds * SHARED_WITH_PROMPTS : seconds;
    const decodingS = readsPromptsAlone ? leftS : sharedS;
    const decoding = running.filter(({ promptLeft }) => promptLeft === 0);
    const tokens = decodingS / (gapS * (1 + SLOWER_BY_ONE * decoding.length));
    if (tokens === 0) return;
    let hasEnded = false;
    for (const work of decoding) {
      if (work.isStuck && work.isAnswering) continue;
      const { isStream, completionTokens, heldShare } = work.request;
      work.completionLeft -= tokens;
      const isOver = work.completionLeft <= 0;
      if (isOver) {
        this.#endedMs = nowMs;
        hasEnded = true;
        if (isStream) this.#tellEnd(work, nowMs, decoding.length);
      } else if (isStream && work.completionLeft > heldShare * completionTokens) {
        work.silentSinceMs = nowMs;
        work.isAnswering = true;
        work.firstTokenMs ??= nowMs;
      }
    }
    if (hasEnded) this.#work = this.#work.filter(({ completionLeft }) => completionLeft > 0);
  }

  /** Gives up what has been silent since before then, as clients and time-outs do. */
  giveUp(beforeMs: number): void {
    if (this.#work.some(({ silentSinceMs }) => silentSinceMs < beforeMs))
      this.#work = this.#work.filter(({ silentSinceMs }) => silentSinceMs >= beforeMs);
  }

  /** When the last request was sent of those whose streams have ended. */
  get endedSentMs(): number | null {
    return this.#endedSentMs;
  }

  #tellEnd({ request, sentMs, firstTokenMs }: Work, nowMs: number, decodingCount: number): void {
    this.#endedSentMs = Math.max(this.#endedSentMs ?? sentMs, sentMs);
    this.onStreamEnd({
      promptChars: CHARS_PER_TOKEN * request.promptTokens,
      firstTokenMs: (firstTokenMs ?? nowMs) - sentMs,
      gapMs: 1_000 * this.#speed.gapS * (1 + SLOWER_BY_ONE * decodingCount),
    });
  }

  /** What its connections show: as UpstreamConnections.observeSilence. */
  observeSilence(onStream?: (seen: SimulatedStream) => void): Silence {
    let heardMs = this.#endedMs;
    let waitingSinceMs: number | null = null;
    for (const { silentSinceMs, isAnswering, sentMs, request } of this.#work) {
      const stream = { kind: STREAM_KIND, size: CHARS_PER_TOKEN * request.promptTokens, holds: [] };
      if (request.isStream) onStream?.({ stream, silentSinceMs, sentMs, isAnswering });
      if (isAnswering && (heardMs === null || silentSinceMs > heardMs)) heardMs = silentSinceMs;
      if (waitingSinceMs === null || silentSinceMs < waitingSinceMs) waitingSinceMs = silentSinceMs;
    }
    return { heardMs, waitingSinceMs };
  }
}
