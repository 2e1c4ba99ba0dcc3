import { MemberScanner } from '#json';
import {
  FinishReasons,
  fillIdentity,
  fillUsage,
  type ResponseFields,
  toResponseId,
} from './response-fields.ts';
import type { ResponseReading } from './response-reading.ts';
import type { UsageFigures } from './usage-tally.ts';

/** Reads a JSON response of any size as it passes: usage, timings and finish reasons, in bounded memory. */
export class JsonTap {
  readonly #reading: Pick<ResponseReading, 'endpoint' | 'scratch'>;
  readonly #scanner: MemberScanner;

  constructor(reading: Pick<ResponseReading, 'endpoint' | 'scratch'>) {
    this.#reading = reading;
    this.#scanner = new MemberScanner(reading.endpoint.wantedOfAnswer);
  }

  /** Whether the whole object has come. */
  get isWhole(): boolean {
    return this.#scanner.isWhole;
  }

  /** What the engine has reported; nothing before the end of the response. */
  get usage(): UsageFigures {
    const { endpoint, scratch } = this.#reading;
    return endpoint.readAnswer(this.#scanner, scratch.cursor).usage ?? {};
  }

  /** What the engine calls the response. Nothing before the end of the response, or if it could be no id. */
  get responseId(): string | null {
    const { endpoint, scratch } = this.#reading;
    return toResponseId(endpoint.readAnswer(this.#scanner, scratch.cursor).identity?.id ?? null);
  }

  /** How the engine says that the response stands. Nothing before the end of the answer. */
  get state(): 'open' | 'finished' | null {
    const { endpoint, scratch } = this.#reading;
    const { isOpen, finished } = endpoint.readAnswer(this.#scanner, scratch.cursor);
    if (isOpen === true) return 'open';
    return finished.length > 0 ? 'finished' : null;
  }

  /** Takes the next part of the response. Keeps no reference to it. */
  push(chunk: Buffer): void {
    this.#scanner.push(chunk);
  }

  /** Writes the facts into a record. */
  fill(fields: ResponseFields): void {
    const { endpoint, scratch } = this.#reading;
    const { identity, usage, timings, finished } = endpoint.readAnswer(this.#scanner, scratch.cursor);
    if (usage !== null) fillUsage(fields, usage);
    if (timings !== null) fields.timings = timings;
    if (identity !== null) fillIdentity(fields, identity);
    const reasons = new FinishReasons();
    for (const choice of finished) reasons.add(choice);
    reasons.fill(fields);
  }
}
