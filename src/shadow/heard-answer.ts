import { itemsOf, memberOf, parseJson } from '#base/parsed';
import { AnswerReader, type ResponseFields, type SentRequest } from '#proxy';
import type { PairSide } from '#verdict/pairs';
import type { ResponseHead } from '#wire/message';
import { OutputDigest, type PairSalt } from './output-digest.ts';

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

/** More text of the arguments of one call is not looked at. */
const MAX_ARGUMENT_CHARS = 64 * 1024;
const MAX_CALLS = 128;

interface Call {
  name: string;
  /** Its arguments as they come. They are forgotten when the answer is over. */
  text: string;
}

/** What calls of tools look like: how many, of which names, with which members. Values of arguments are no part of it. */
class ToolShape {
  readonly #calls = new Map<number, Call>();

  /** Takes what an answer says of a call: `index` is its place among the calls. */
  add(index: number, name: unknown, text: unknown): void {
    if (this.#calls.size >= MAX_CALLS && !this.#calls.has(index)) return;
    const call = this.#calls.get(index) ?? { name: '', text: '' };
    this.#calls.set(index, call);
    if (typeof name === 'string') call.name += name;
    if (typeof text === 'string' && call.text.length < MAX_ARGUMENT_CHARS) call.text += text;
  }

  /** The number that the next call gets. */
  get size(): number {
    return this.#calls.size;
  }

  /** The shape in one line; null: nothing is called. It holds names: compare it, and forget it. */
  end(): { readonly shape: string; readonly isBroken: boolean } | null {
    if (this.#calls.size === 0) return null;
    const calls = [...this.#calls].toSorted(([a], [b]) => a - b).map(([, call]) => call);
    this.#calls.clear();
    const members = calls.map(({ name, text }) => [name, toMembers(text)] as const);
    return { shape: JSON.stringify(members), isBroken: members.some(([, names]) => names === false) };
  }
}

/** The names of the members of an object, in their order in the alphabet; false: the text is not one JSON object. */
function toMembers(text: string): readonly string[] | false {
  const parsed = parseJson(text === '' ? '{}' : text);
  const isObject = typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed);
  return isObject ? Object.keys(parsed).sort() : false;
}

/** Receives what an answer, or an event of one, has of output. */
interface OutputParts {
  text(text: string): void;
  /** `index`: the place of the call among those of the answer; null: the next one, or that which goes on. */
  call(index: number | null, name: unknown, args: unknown): void;
}

/** The members of a message, or of what has come of one, that are text. */
const TEXTS = ['content', 'reasoning', 'reasoning_content', 'refusal', 'text', 'thinking'] as const;

/**
 * Finds the output in parsed JSON: of a whole answer, or of one event of a stream; in the style of chat completions,
 * completions, messages or responses. What is of no such style has none.
 */
function collectOutput(json: unknown, parts: OutputParts): void {
  for (const choice of itemsOf(json, 'choices')) {
    addText(memberOf(choice, 'text'), parts);
    addMessage(memberOf(choice, 'delta') ?? memberOf(choice, 'message'), parts);
  }
  // A whole message, and a whole response.
  for (const block of itemsOf(json, 'content')) addBlock(block, parts);
  for (const item of itemsOf(json, 'output')) addBlock(item, parts);
  // Events of a message, and of a response.
  addBlock(memberOf(json, 'content_block'), parts);
  addBlock(memberOf(json, 'item'), parts);
  const delta = memberOf(json, 'delta');
  if (typeof delta !== 'string') addBlock(delta, parts);
  else if (String(memberOf(json, 'type')).includes('arguments')) parts.call(null, undefined, delta);
  else addText(delta, parts);
}

function addMessage(message: unknown, parts: OutputParts): void {
  for (const name of TEXTS) addText(memberOf(message, name), parts);
  for (const block of itemsOf(message, 'content')) addBlock(block, parts);
  for (const [place, call] of itemsOf(message, 'tool_calls').entries()) {
    const index = memberOf(call, 'index');
    const called = memberOf(call, 'function');
    const args = memberOf(called, 'arguments');
    parts.call(typeof index === 'number' ? index : place, memberOf(called, 'name'), args);
  }
  const called = memberOf(message, 'function_call');
  if (called != null) parts.call(0, memberOf(called, 'name'), memberOf(called, 'arguments'));
}

/** A block of a message or an item of a response, whole or what has come of it. */
function addBlock(block: unknown, parts: OutputParts): void {
  const type = memberOf(block, 'type');
  if (type === 'tool_use' || type === 'function_call') {
    const input = memberOf(block, 'input');
    const text = memberOf(block, 'arguments') ?? (isEmpty(input) ? '' : JSON.stringify(input));
    parts.call(NEXT, memberOf(block, 'name'), text);
    return;
  }
  const partial = memberOf(block, 'partial_json');
  if (typeof partial === 'string') parts.call(null, undefined, partial);
  addMessage(block, parts);
}

/** Stands for the next call. */
const NEXT = -1;

/** A call whose arguments follow in later events begins with none. */
function isEmpty(input: unknown): boolean {
  return typeof input !== 'object' || input === null || Object.keys(input).length === 0;
}

function addText(value: unknown, parts: OutputParts): void {
  if (typeof value === 'string' && value !== '') parts.text(value);
}
