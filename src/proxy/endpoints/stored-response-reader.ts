import { EventScratch } from '../response/events/event-scratch.ts';
import { JsonTap } from '../response/json-tap.ts';
import type { ResponseFields } from '../response/response-fields.ts';
import { RESPONSES } from './responses.ts';

/** Reads what an engine says of a response that it keeps. The output can be long: it is read as it comes, and not kept. */
export class StoredResponseReader {
  readonly #id: string;
  readonly #tap = new JsonTap({ endpoint: RESPONSES, scratch: new EventScratch() });

  constructor(id: string) {
    this.#id = id;
  }

  /** Where the engine says it. */
  get path(): string {
    return `${RESPONSES.path}/${encodeURIComponent(this.#id)}`;
  }

  /** Takes the next part of the answer. */
  push(chunk: Buffer): void {
    this.#tap.push(chunk);
  }

  /** Whether the response goes on, or what its record has of it; null: the answer is no response with this id. */
  read(): 'open' | ResponseFields | null {
    const { responseId, state } = this.#tap;
    if (responseId !== this.#id || state === null) return null;
    if (state === 'open') return state;
    const fields: ResponseFields = {};
    this.#tap.fill(fields);
    return fields;
  }
}
