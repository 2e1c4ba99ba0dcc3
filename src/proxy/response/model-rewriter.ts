import { EventLines } from './events/event-lines.ts';
import { ModelFinder } from './model-finder.ts';
import { OutgoingPieces } from './outgoing-pieces.ts';

/**
 * Replaces the name of the model in an answer with the one that the client used. All other bytes pass at once, wherever
 * the answer is cut. The new name goes out when the first byte of the replica's comes.
 */
export class ModelRewriter {
  readonly #name: Buffer;
  readonly #finder = new ModelFinder();
  /** Null: the answer is JSON, not a stream of events. */
  readonly #lines: EventLines | null;
  readonly #out = new OutgoingPieces();
  /** From where on the bytes of the current piece have not gone out. */
  #from = 0;

  /** @param name what the client called the model */
  constructor(name: string, isEventStream: boolean) {
    this.#name = Buffer.from(JSON.stringify(name));
    this.#lines = isEventStream
      ? new EventLines({
          onData: (bytes, start, end) => this.#readJson(bytes, start, end),
          onLineEnd: (at) => this.#endLine(at),
          onEventEnd: () => this.#finder.reset(),
        })
      : null;
  }

  /** Takes the next pieces of the answer. Returns what goes out for them. */
  rewrite(pieces: readonly Buffer[]): readonly Buffer[] {
    for (const piece of pieces) {
      this.#from = 0;
      if (this.#lines === null) this.#readJson(piece, 0, piece.length);
      else this.#lines.push(piece);
      if (!this.#finder.isInName) this.#out.add(piece, this.#from);
    }
    return this.#out.take();
  }

  #readJson(bytes: Buffer, start: number, end: number): void {
    for (let at = start; at < end; ) {
      const wasInName = this.#finder.isInName;
      at = this.#finder.read(bytes, at, end);
      if (wasInName && !this.#finder.isInName) this.#from = at;
      if (wasInName || !this.#finder.isInName) continue;
      this.#out.add(bytes, this.#from, at - 1);
      this.#out.add(this.#name);
    }
  }

  /** A name that its line cuts off is no JSON: what follows passes. */
  #endLine(at: number): void {
    if (!this.#finder.isInName) return;
    this.#finder.reset();
    this.#from = at;
  }
}
