import { isDeepStrictEqual } from 'node:util';

/** Prints comparisons as they are made, and counts differences. */
export class Report {
  #compared = 0;
  #differences = 0;

  /** How many comparisons there were so far. */
  get compared(): number {
    return this.#compared;
  }

  /** Starts a group of comparisons. */
  section(title: string): void {
    console.log(`\n${title}`);
  }

  /** Prints a fact that is not judged. */
  note(text: string): void {
    console.log(`        ${text}`);
  }

  /** What the gateway did or recorded must equal what the engine or the client knows. */
  same(what: string, actual: unknown, expected: unknown): void {
    const isSame = isDeepStrictEqual(actual, expected);
    this.#count(
      isSame,
      isSame ? `${what}: ${show(actual)}` : `${what}: ${show(actual)}, not ${show(expected)}`,
    );
  }

  /** A time of the gateway must be within the tolerance of that of the client. */
  near(what: string, actualMs: number, expectedMs: number, toleranceMs: number): void {
    const differenceMs = actualMs - expectedMs;
    this.#count(
      Math.abs(differenceMs) <= toleranceMs,
      `${what}: ${actualMs.toFixed(2)} ms, client ${expectedMs.toFixed(2)} ms, difference ${differenceMs.toFixed(2)} ms`,
    );
  }

  holds(what: string, isTrue: boolean): void {
    this.#count(isTrue, what);
  }

  /** Prints the totals, and returns whether nothing differed. */
  finish(): boolean {
    console.log(`\n${this.#compared} comparisons, ${this.#differences} differences`);
    return this.#differences === 0;
  }

  #count(isGood: boolean, text: string): void {
    this.#compared++;
    if (!isGood) this.#differences++;
    console.log(`  ${isGood ? 'ok  ' : 'DIFF'}  ${text}`);
  }
}

function show(value: unknown): string {
  const text = JSON.stringify(value) ?? 'absent';
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}
