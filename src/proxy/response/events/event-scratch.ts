import { JsonCursor, JsonLexer } from '#json';
import { viewOf } from '#json/bytes';
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
  #bytes: Buffer = NOTHING;
  #view = viewOf(NOTHING);

  /** The bytes as a DataView. The last one is kept: a read may hold many events. */
  viewOf(bytes: Buffer): DataView {
    if (bytes !== this.#bytes) {
      this.#bytes = bytes;
      this.#view = viewOf(bytes);
    }
    return this.#view;
  }
}
