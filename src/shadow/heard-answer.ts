import { parseJson } from '#base/parsed';
import { AnswerReader, type ResponseFields, type SentRequest } from '#proxy';
import type { PairSide } from '#verdict/pairs';
import type { ResponseHead } from '#wire/message';
import { collectOutput, NEXT, type OutputParts } from './collect-output.ts';
import { OutputDigest, type PairSalt } from './output-digest.ts';
import { ToolShape } from './tool-shape.ts';

/** Whole answers up to this size are looked at for their output. */
const MAX_WHOLE_BYTES = 1024 * 1024;

/** How an answer ended, for who compares it. */
export type HeardEnd = 'whole' | 'broken' | 'unclear';

/** One answer of a pair, as it comes: its facts and a digest of its output. It keeps no text once it is over. */
export class HeardAnswer implements OutputParts {
  readonly digest: OutputDigest;
  readonly #reader: AnswerReader;
  readonly #sentMs: number;
  readonly #inflight: number;
  readonly #tools = new ToolShape();
  /** A whole answer, until it is over; null: it is not looked at. */
  #whole: Buffer[] | null = [];
  #wholeBytes = 0;
  #toolShape: ReturnType<ToolShape['end']> = null;
  #fields: ResponseFields & { stream?: boolean } = {};
  #end: HeardEnd | null = null;
  #endedMs = 0;

  /** `sentMs`: when its request was written. `inflight`: at its replica at that moment. */
  constructor(reading: SentRequest['reading'], sentMs: number, inflight: number, salt: PairSalt) {
    this.digest = new OutputDigest(salt);
    this.#reader = new AnswerReader(reading, sentMs, this);
    this.#sentMs = sentMs;
    this.#inflight = inflight;
  }

  get isOver(): boolean {
    return this.#end !== null;
  }

  get isStream(): boolean {
    return this.#reader.isEventStream;
  }

  get status(): number {
    return this.#reader.status;
  }

  get fields(): Readonly<ResponseFields> {
    return this.#fields;
  }

  /** What calls of tools look like; null: nothing is called. It holds names: compare it, and forget it. */
  get toolShape(): string | null {
    return this.#toolShape?.shape ?? null;
  }

  get durationMs(): number {
    return this.#endedMs - this.#sentMs;
  }

  onHead(head: ResponseHead): void {
    this.#reader.begin(head);
    if (!this.#reader.isJson) this.#whole = null;
  }

  onData(view: Buffer): void {
    this.#reader.push(view, performance.now());
    if (this.#whole === null) return;
    this.#wholeBytes += view.length;
    if (this.#wholeBytes > MAX_WHOLE_BYTES) this.#whole = null;
    else this.#whole.push(view);
  }

  /** Nothing follows. */
  finish(end: HeardEnd): void {
    if (this.#end !== null) return;
    this.#end = end;
    this.#endedMs = performance.now();
    this.#reader.end();
    this.#reader.fill(this.#fields);
    if (this.#whole !== null && this.#wholeBytes > 0 && end === 'whole')
      collectOutput(parseJson(Buffer.concat(this.#whole).toString()), this);
    this.#whole = null;
    this.#toolShape = this.#tools.end();
  }

  /** The facts of an answer that is over. */
  toSide(): PairSide {
    const { ttft_ms, gap_p50_ms, completion_tokens, finish_reasons } = this.#fields;
    return {
      outcome: this.outcome,
      firstTokenMs: ttft_ms ?? null,
      gapMs: gap_p50_ms ?? null,
      durationMs: this.durationMs,
      completionTokens: completion_tokens ?? null,
      finish: finish_reasons?.[0] ?? null,
      tools: this.#toolShape === null ? 'none' : this.#toolShape.isBroken ? 'broken' : 'called',
      inflight: this.#inflight,
    };
  }

  /** As a record would tell it: a status of 400 or more, an error in the stream, an end too soon are errors. */
  get outcome(): PairSide['outcome'] {
    const { status, hasError, isWhole } = this.#reader;
    if (this.#end === 'unclear') return 'unclear';
    if (this.#end === 'broken' || status >= 400 || hasError || !isWhole) return 'error';
    return 'ok';
  }

  onText(json: Buffer, start: number, end: number): void {
    this.digest.addJson(json, start, end);
  }

  onParts(json: Buffer, start: number, end: number): void {
    collectOutput(parseJson(json.toString('utf8', start, end)), this);
  }

  text(text: string): void {
    this.digest.add(Buffer.from(text));
  }

  call(index: number | null, name: unknown, args: unknown): void {
    const place = index === NEXT ? this.#tools.size : (index ?? Math.max(0, this.#tools.size - 1));
    this.#tools.add(place, name, args);
    for (const part of [name, args])
      if (typeof part === 'string' && part !== '') this.digest.add(Buffer.from(part));
  }
}
