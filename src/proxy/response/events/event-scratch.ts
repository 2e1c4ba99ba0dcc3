import { JsonCursor, JsonLexer } from '#json';
import { type CurrentEventData, createEventData } from './sse.ts';

const NOTHING = Buffer.alloc(0);

/**
 * Reading tools that all responses of a thread share, since to make them takes longer than to read an event. Responses
 * are read one event at a time: what these hold is good until the next event is read, of whatever response.
 */
export class EventScratch {
  readonly cursor = new JsonCursor(NOTHING);
  readonly lexer = new JsonLexer(NOTHING, 0, 0);
  readonly data: CurrentEventData = createEventData();
  #view: DataView = new DataView(NOTHING.buffer);

  /**
   * The memory in which these bytes are, from its own first byte on, as a DataView. The last one is kept: some hundred
   * reads are in the same memory.
   */
  memoryOf({ buffer }: Buffer): DataView {
    if (buffer !== this.#view.buffer) this.#view = new DataView(buffer);
    return this.#view;
  }
}
