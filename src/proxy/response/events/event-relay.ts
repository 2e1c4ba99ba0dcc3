import type { Fingerprint } from '#replicas';
import { OutgoingPieces } from '../outgoing-pieces.ts';
import type { ResponseReading } from '../response-reading.ts';
import type { StreamTap } from '../stream-tap.ts';
import { decideUndo, rangeOfMember, showsForcedUsage, type UndoRules } from '../undo-usage.ts';
import { EventPattern } from './event-pattern.ts';
import { EventPrefix } from './event-prefix.ts';
import { type HeldEvent, holdEvent, spliceMember } from './held-event.ts';
import { readEventData, type SseSink, SseSplitter } from './sse.ts';
import type { MemberSpan, StreamChunk } from './stream-chunk.ts';

/**
 * Turns the reads of a replica's event stream into what the client gets, and shows every event to the tap. Where we did
 * not ask for usage, every read goes out as it comes. Where we did, bytes are held until an event's end or its first
 * bytes decide.
 */
export class EventRelay implements SseSink {
  readonly #splitter: SseSplitter;
  readonly #undo: UndoRules | null;
  readonly #fingerprint: Fingerprint;
  readonly #tap: StreamTap;
  readonly #reading: ResponseReading;
  readonly #pattern: EventPattern;
  readonly #prefix: EventPrefix | null;
  readonly #out = new OutgoingPieces();
  #arrivedMs = 0;
  /** How many bytes of the unfinished event have gone out. */
  #sentOfPending = 0;
  #held: HeldEvent | null = null;
  #heldCount = 0;
  #wasWithheld = false;
  /** The replica sends usage whether asked or not: nothing is undone. */
  #isForced = false;

  /**
   * @param fingerprint what earlier streams of the same server process have shown; filled from this one. With n > 1 vLLM
   *   puts it on each finishing chunk (chat_completion/serving.py), and only the last of them comes right before the
   *   usage chunk: the others are completed from here.
   */
  constructor(reading: ResponseReading, fingerprint: Fingerprint, tap: StreamTap) {
    const { undo, endpoint, scratch, maxEventBytes } = reading;
    this.#splitter = new SseSplitter(maxEventBytes);
    this.#pattern = new EventPattern(scratch);
    this.#undo = undo;
    this.#prefix = undo && new EventPrefix(undo, endpoint.wantedOfAnswer.list);
    this.#reading = reading;
    this.#fingerprint = fingerprint;
    this.#tap = tap;
  }

  /** Whether a finishing event waits for the event after it. */
  get isHolding(): boolean {
    return this.#held !== null;
  }

  /**
   * Whether the held event is the last with output, and lacks a fingerprint that only the usage chunk will show. Nothing
   * but that chunk can follow, so to wait for it delays nothing else.
   */
  get holdsForFingerprint(): boolean {
    return (
      this.#held?.splice != null &&
      this.#undo?.movedMember === 'systemFingerprint' &&
      this.#fingerprint.text === null &&
      this.#reading.choicesPerPrompt === 1
    );
  }

  /** How many finishing events have been held so far. */
  get heldCount(): number {
    return this.#heldCount;
  }

  /** Whether the client has received the first part of an event and not its end. */
  get isMidEvent(): boolean {
    return this.#undo === null
      ? this.#splitter.isMidEvent
      : this.#sentOfPending > 0 || this.#splitter.isSkipping;
  }

  /** Takes one read. Returns what goes out for it, in order; possibly nothing. */
  push(chunk: Buffer, arrivedMs: number): readonly Buffer[] {
    this.#arrivedMs = arrivedMs;
    this.#splitter.push(chunk, this);
    if (this.#undo === null) return [chunk];
    this.#passPrefix();
    return this.#out.take();
  }

  /** The replica ended the stream: what is still held goes out. */
  end(): readonly Buffer[] {
    this.#splitter.end(this);
    return this.releaseHeld();
  }

  /** Sends a held finishing event. A partial event after it stays held. */
  releaseHeld(): readonly Buffer[] {
    this.#release(null);
    return this.#out.take();
  }

  onEvent(bytes: Buffer, start: number, end: number): void {
    const { endpoint, scratch } = this.#reading;
    const { data } = scratch;
    const chunk = readEventData(bytes, start, end, data)
      ? endpoint.readEvent(data, scratch.cursor, this.#tap.wantsIdentity)
      : null;
    this.#tap.observe(chunk, data.hasErrorLine, this.#arrivedMs);
    if (this.#undo === null) {
      this.#learn(bytes, start, end, chunk);
      return;
    }
    if (this.#sentOfPending > 0 || chunk === null) this.#passEvent(bytes, start, end);
    else this.#undoEvent(bytes, start, end, chunk, this.#undo);
    // Afterwards: an event that came in pieces has released the held one before it could be read.
    if (chunk !== null) this.#noteFingerprint(chunk, this.#undo);
    this.#beginEvent();
  }

  takeKnown(bytes: Buffer, start: number): number {
    const end = this.#pattern.match(bytes, start);
    if (end === -1) return start;
    if (this.#pattern.hasText) this.#tap.observeOutput(this.#arrivedMs);
    if (this.#undo !== null) this.#passEvent(bytes, start, end);
    return end;
  }

  /** Remembers an event that passes unchanged, if it says nothing but that there is output. All like it say the same. */
  #learn(bytes: Buffer, start: number, end: number, chunk: StreamChunk | null): void {
    const { isInPlace, hasErrorLine } = this.#reading.scratch.data;
    if (chunk === null || chunk.text === null || !isInPlace || hasErrorLine) return;
    const isTelling =
      chunk.hasError || chunk.usage !== null || chunk.timings !== null || chunk.finished.length > 0;
    if (!isTelling) this.#pattern.remember(bytes, start, end, chunk.text);
  }

  onOverlong(bytes: Buffer, start: number, end: number): void {
    this.#tap.noteUnread();
    if (this.#undo === null) return;
    this.#release(null);
    this.#out.add(bytes, start + this.#sentOfPending, end);
    this.#beginEvent();
  }

  #beginEvent(): void {
    this.#sentOfPending = 0;
    this.#prefix?.reset();
  }

  #passEvent(bytes: Buffer, start: number, end: number): void {
    // A lone LF is the second half of a CRLF: it belongs to the event before it, sent or not.
    if (this.#wasWithheld && end - start === 1) return;
    this.#release(null);
    this.#out.add(bytes, start + this.#sentOfPending, end);
    this.#wasWithheld = false;
  }

  #undoEvent(bytes: Buffer, start: number, end: number, chunk: StreamChunk, rules: UndoRules): void {
    if (showsForcedUsage(chunk, rules)) this.#isForced = true;
    const decision = this.#isForced ? 'pass' : decideUndo(chunk, rules);
    this.#release(decision === 'withhold' ? this.#movedMemberOf(chunk, rules) : null);
    this.#wasWithheld = decision === 'withhold';
    switch (decision) {
      case 'withhold':
        return;
      case 'cut_usage':
        this.#emitWithout(chunk.usageMember, bytes, start, end);
        return;
      case 'cut_timings':
        this.#emitWithout(chunk.members.timings, bytes, start, end);
        return;
      case 'hold':
      case 'cut_usage_and_hold':
        this.#heldCount++;
        this.#held = holdEvent(
          { bytes, start, end, isInPlace: this.#reading.scratch.data.isInPlace },
          chunk,
          rules,
          decision === 'cut_usage_and_hold',
        );
        return;
      case 'pass':
        this.#learn(bytes, start, end, chunk);
        this.#out.add(bytes, start, end);
    }
  }

  /** The member that a withheld usage chunk took from the finishing chunk. */
  #movedMemberOf(chunk: StreamChunk, { movedMember }: UndoRules): Buffer | null {
    const span = movedMember === null ? null : chunk.members[movedMember];
    return span && this.#reading.scratch.data.bytes.subarray(span.start, span.end);
  }

  /** Remembers the fingerprint, whichever chunk of the stream shows it. */
  #noteFingerprint(chunk: StreamChunk, rules: UndoRules): void {
    if (rules.movedMember !== 'systemFingerprint') return;
    const text = this.#movedMemberOf(chunk, rules);
    if (text !== null && text.length <= MAX_REMEMBERED_BYTES) this.#fingerprint.note(text);
  }

  /**
   * Sends the held event with the member that the usage chunk after it carried. If another event came instead, or none
   * in time, the event gets the member that its server is known to use.
   */
  #release(movedMember: Buffer | null): void {
    const held = this.#held;
    if (held === null) return;
    this.#held = null;
    const member = movedMember ?? this.#fingerprint.text;
    if (member === null || held.splice === null) this.#out.add(held.bytes);
    else this.#out.addAll(spliceMember(held.bytes, held.splice, member));
  }

  #emitWithout(member: MemberSpan | null, bytes: Buffer, start: number, end: number): void {
    const { data } = this.#reading.scratch;
    const range = member === null ? null : rangeOfMember(data.bytes, member);
    if (range === null) {
      this.#out.add(bytes, start, end);
      return;
    }
    if (data.isInPlace) {
      this.#out.add(bytes, start, range.start);
      this.#out.add(bytes, range.end, end);
      return;
    }
    // Data of several lines, which no known engine sends: its lines are rewritten.
    const text =
      data.bytes.toString('latin1', data.start, range.start) +
      data.bytes.toString('latin1', range.end, data.end);
    this.#out.add(Buffer.from(`${text.replace(/^/gm, 'data: ')}\n\n`, 'latin1'));
  }

  #passPrefix(): void {
    if (this.#splitter.pendingBytes <= this.#sentOfPending) return;
    const { pending } = this.#splitter;
    if (this.#sentOfPending === 0 && !this.#prefix?.showsPass(pending)) return;
    this.#release(null);
    this.#out.add(pending, this.#sentOfPending, pending.length);
    this.#sentOfPending = pending.length;
  }
}

/** A fingerprint is some tens of bytes. Nothing larger is kept. */
const MAX_REMEMBERED_BYTES = 256;
