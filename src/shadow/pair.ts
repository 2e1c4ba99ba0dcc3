import type { ShadowSpan } from '#otel/span';
import type { AnswerListener, SentRequest } from '#proxy';
import type { OutputComparison, PairObservation } from '#verdict/pairs';
import type { ResponseHead } from '#wire/message';
import { Copy, type CopyStart } from './copy.ts';
import { HeardAnswer } from './heard-answer.ts';
import { drawSalt } from './output-digest.ts';

/** What a pair needs beside the request. */
export interface PairStart extends Pick<CopyStart, 'lease' | 'timeouts' | 'traceId'> {
  readonly sent: SentRequest;
  /** Whether the request asks for the same output each time. */
  readonly asksSameOutput: boolean;
  /** Whether the copy is cut when the client leaves. */
  readonly cutsWithClient: boolean;
  /** A lease for another copy; null: the shadow gets none now. */
  readonly leaseAgain: () => CopyStart['lease'] | null;
  readonly onSpan: (span: ShadowSpan) => void;
  /** Called once, when nothing more comes of the pair. Null: it shows nothing. */
  readonly onOver: (pair: PairObservation | null) => void;
}

/** The two answers to one request, from the moment at which it is sent. The salt of their digests goes with them. */
export class Pair implements AnswerListener {
  readonly #start: PairStart;
  readonly #salt = drawSalt();
  readonly #primary: HeardAnswer;
  readonly #copy: Copy;
  #again: Copy | null = null;
  #isOver = false;

  constructor(start: PairStart) {
    this.#start = start;
    const { sent } = start;
    this.#primary = new HeardAnswer(sent.reading, sent.sentMs, sent.replica.inflight, this.#salt);
    this.#copy = this.#toCopy(start.lease, false);
    this.#copy.send();
  }

  onHead(head: ResponseHead): void {
    this.#primary.onHead(head);
  }

  onData(view: Buffer): void {
    this.#primary.onData(view);
  }

  onOver(end: Parameters<AnswerListener['onOver']>[0]): void {
    this.#primary.finish(end === 'whole' || end === 'broken' ? end : 'unclear');
    if (end === 'left' && this.#start.cutsWithClient) this.cut();
    else this.#compareIfOver();
  }

  /** Ends what goes on at the shadow. */
  cut(): void {
    this.#copy.cut();
    this.#again?.cut();
  }

  #toCopy(lease: CopyStart['lease'], isAgain: boolean): Copy {
    const { sent, timeouts, traceId, onSpan } = this.#start;
    const onOver = (copy: Copy) => {
      onSpan(copy.toSpan());
      this.#compareIfOver();
    };
    return new Copy({ sent, lease, salt: this.#salt, timeouts, traceId, isAgain, onOver });
  }

  #compareIfOver(): void {
    if (this.#isOver || !this.#primary.isOver || !this.#copy.isOver) return;
    const output = this.#compareOutputs();
    if (output?.isEqual === false && this.#again === null) {
      const lease = this.#start.leaseAgain();
      if (lease !== null) {
        this.#again = this.#toCopy(lease, true);
        this.#again.send();
        return;
      }
    }
    if (this.#again !== null && !this.#again.isOver) return;
    this.#isOver = true;
    this.#start.onOver(this.#toObservation(output));
  }

  /** Null if nothing can be said of the shadow: the client left, or the copy was cut. */
  #toObservation(output: OutputComparison | null): PairObservation | null {
    const { sent, lease } = this.#start;
    const { answer } = this.#copy;
    const peer = this.#primary.toSide();
    const own = answer?.toSide() ?? NOT_REACHED;
    if (peer.outcome === 'unclear' || own.outcome === 'unclear') return null;
    const shapes = [answer?.toolShape ?? null, this.#primary.toolShape];
    return {
      shadow: lease.replica.name,
      primary: sent.replica.name,
      model: sent.model,
      endpoint: sent.reading.endpoint.path,
      stream: this.#primary.isStream,
      tookMs: performance.now() - sent.sentMs,
      own,
      peer,
      output,
      sameToolCalls: shapes.every((shape) => shape === null) ? null : shapes[0] === shapes[1],
    };
  }

  #compareOutputs(): OutputComparison | null {
    const { answer } = this.#copy;
    if (!this.#start.asksSameOutput || answer === null) return null;
    if (answer.outcome !== 'ok' || this.#primary.outcome !== 'ok') return null;
    const { digest: own } = answer;
    const { digest: peer } = this.#primary;
    if (own.bytes === 0 && peer.bytes === 0) return null;
    const atByte = peer.partsAt(own);
    if (atByte === null) return { isEqual: true, atToken: null, atByte: null, again: null };
    return { isEqual: false, atByte, atToken: this.#tokenAt(atByte), again: this.#toAgain(own, peer) };
  }

  /** A stream comes in pieces, usually of a token each; of a whole answer, tokens are taken to be equally long. */
  #tokenAt(byte: number): number {
    const { digest, isStream, fields } = this.#primary;
    if (isStream) return digest.piecesBefore(byte);
    return Math.floor((byte / Math.max(1, digest.bytes)) * (fields.completion_tokens ?? 0));
  }

  #toAgain(own: HeardAnswer['digest'], peer: HeardAnswer['digest']): OutputComparison['again'] {
    const answer = this.#again?.isOver === true ? this.#again.answer : null;
    if (answer === null || answer.outcome !== 'ok') return null;
    if (answer.digest.partsAt(own) === null) return 'as_shadow';
    return answer.digest.partsAt(peer) === null ? 'as_primary' : 'other';
  }
}

const NOT_REACHED = {
  outcome: 'error',
  firstTokenMs: null,
  gapMs: null,
  durationMs: 0,
  completionTokens: null,
  finish: null,
  tools: 'none',
  inflight: 0,
} as const;
