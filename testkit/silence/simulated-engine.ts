import type { Silence } from '#replicas/shared';

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

interface Work {
  readonly request: EngineRequest;
  promptLeft: number;
  completionLeft: number;
  /** When its last byte came; before that, when it was sent. */
  silentSinceMs: number;
  isAnswering: boolean;
}

/** How much slower each further response makes all. */
const SLOWER_BY_ONE = 0.02;
/** How much of its time an engine with chunked prefill leaves for responses while it reads a prompt. */
const SHARED_WITH_PROMPTS = 0.7;

/** An inference server in virtual time, seen from its connections: when which of them were silent. */
export class SimulatedEngine {
  readonly #speed: EngineSpeed;
  #work: Work[] = [];
  #endedMs: number | null = null;
  /** While it is, no byte comes from it. */
  isFrozen = false;

  constructor(speed: EngineSpeed) {
    this.#speed = speed;
  }

  get inflight(): number {
    return this.#work.length;
  }

  send(request: EngineRequest, nowMs: number): void {
    const { promptTokens: promptLeft, completionTokens: completionLeft } = request;
    this.#work.push({ request, promptLeft, completionLeft, silentSinceMs: nowMs, isAnswering: false });
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
      const { isStream, completionTokens, heldShare } = work.request;
      work.completionLeft -= tokens;
      const isOver = work.completionLeft <= 0;
      if (isOver) {
        this.#endedMs = nowMs;
        hasEnded = true;
      } else if (isStream && work.completionLeft > heldShare * completionTokens) {
        work.silentSinceMs = nowMs;
        work.isAnswering = true;
      }
    }
    if (hasEnded) this.#work = this.#work.filter(({ completionLeft }) => completionLeft > 0);
  }

  /** Gives up what has been silent since before then, as clients and time-outs do. */
  giveUp(beforeMs: number): void {
    if (this.#work.some(({ silentSinceMs }) => silentSinceMs < beforeMs))
      this.#work = this.#work.filter(({ silentSinceMs }) => silentSinceMs >= beforeMs);
  }

  /** What its connections show: as UpstreamConnections.observeSilence. */
  observeSilence(): Silence {
    let heardMs = this.#endedMs;
    let waitingSinceMs: number | null = null;
    for (const { silentSinceMs, isAnswering } of this.#work) {
      if (isAnswering && (heardMs === null || silentSinceMs > heardMs)) heardMs = silentSinceMs;
      if (waitingSinceMs === null || silentSinceMs < waitingSinceMs) waitingSinceMs = silentSinceMs;
    }
    return { heardMs, waitingSinceMs };
  }
}
