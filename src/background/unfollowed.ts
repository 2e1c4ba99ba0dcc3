/** How many parts of `limits.background` differ in when they end. */
const PARTS = 16;

interface Part {
  count: number;
  readonly untilMs: number;
}

/**
 * How many responses of a server may go on that cannot be followed. Each counts until it is older than the limit, or up to
 * a sixteenth longer: so any number takes little memory.
 */
export class Unfollowed {
  #parts: Part[] = [];

  /** One more, or several, that count until then: monotonic milliseconds. `limitMs`: the limit. */
  add(untilMs: number, limitMs: number, count = 1): void {
    const last = this.#parts.at(-1);
    if (last !== undefined && last.untilMs >= untilMs) last.count += count;
    else this.#parts.push({ count, untilMs: untilMs + limitMs / PARTS });
  }

  /** Those that count until a time. */
  get parts(): readonly Readonly<Part>[] {
    return this.#parts;
  }

  /** How many there are. */
  get count(): number {
    return this.#parts.reduce((sum, { count }) => sum + count, 0);
  }

  /** When the next of them cease to count; null: there are none. */
  get nextMs(): number | null {
    return this.#parts[0]?.untilMs ?? null;
  }

  /** When the last of them cease to count; null: there are none. */
  get lastMs(): number | null {
    return this.#parts.at(-1)?.untilMs ?? null;
  }

  /** Removes those that are over the limit. Returns how many. */
  expire(nowMs: number): number {
    const before = this.count;
    this.#parts = this.#parts.filter(({ untilMs }) => untilMs > nowMs);
    return before - this.count;
  }
}
