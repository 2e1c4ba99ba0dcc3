/** What happened to the world of the requests, and allows some of them to fail. */
export interface Disturbance {
  /**
   * `ended`: the replica ended, whatever ran on it. `absent`: it was drained, removed or restarted, which no request may
   * notice but one for a response that it keeps. `redis`: no or another Redis. `worker`: a worker of a gateway was killed.
   */
  readonly kind: 'ended' | 'absent' | 'redis' | 'worker';
  /** Null: it concerns none in particular. */
  readonly replica: string | null;
  /** On the clock of `performance.now()`. */
  readonly fromMs: number;
  /** Infinity: it lasts. */
  readonly toMs: number;
}

/** Keeps what was disturbed, and when. */
export class Journal {
  readonly #disturbances: { -readonly [Key in keyof Disturbance]: Disturbance[Key] }[] = [];

  get disturbances(): readonly Disturbance[] {
    return this.#disturbances;
  }

  /** Notes what begins now. The returned function notes its end. */
  begin(kind: Disturbance['kind'], replica: string | null = null): () => void {
    const disturbance = { kind, replica, fromMs: performance.now(), toMs: Number.POSITIVE_INFINITY };
    this.#disturbances.push(disturbance);
    return () => {
      disturbance.toMs = performance.now();
    };
  }

  /** What happened at some time between these. */
  between(fromMs: number, toMs: number): readonly Disturbance[] {
    return this.#disturbances.filter((each) => each.toMs >= fromMs && each.fromMs <= toMs);
  }
}
