import { isDeepStrictEqual } from 'node:util';

/** What was compared, and what differed: printed as it comes. */
export class Report {
  #count = 0;
  #differences = 0;

  /** Starts a group of comparisons. */
  section(title: string): void {
    console.log(`\n${title}`);
  }

  /** Tells a fact that is not judged. */
  tell(text: string): void {
    console.log(`        ${text}`);
  }

  /** What the gateway did or recorded must be what the engine or the client knows. */
  same(what: string, actual: unknown, expected: unknown): void {
    const isSame = isDeepStrictEqual(actual, expected);
    this.#note(
      isSame,
      isSame ? `${what}: ${show(actual)}` : `${what}: ${show(actual)}, not ${show(expected)}`,
    );
  }

  /** A number of milliseconds must be within so many of another. */
  near(what: string, actualMs: number, expectedMs: number, toleranceMs: number): void {
    const differenceMs = actualMs - expectedMs;
    this.#note(
      Math.abs(differenceMs) <= toleranceMs,
      `${what}: ${actualMs.toFixed(2)} ms, client ${expectedMs.toFixed(2)} ms, difference ${differenceMs.toFixed(2)} ms`,
    );
  }

  holds(what: string, isTrue: boolean): void {
    this.#note(isTrue, what);
  }

  /** Prints the sum; whether nothing differed. */
  finish(): boolean {
    console.log(`\n${this.#count} comparisons, ${this.#differences} differences`);
    return this.#differences === 0;
  }

  #note(isGood: boolean, text: string): void {
    this.#count++;
    if (!isGood) this.#differences++;
    console.log(`  ${isGood ? 'ok  ' : 'DIFF'}  ${text}`);
  }
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'absent';
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
