import type { RecordedEndpoint } from '../endpoints/recorded-endpoint.ts';
import type { EventScratch } from './events/event-scratch.ts';
import type { UndoRules } from './undo-usage.ts';
import type { UsageTallySettings } from './usage-tally.ts';

/** How the response to one attempt is read for the record. */
export interface ResponseReading extends UsageTallySettings {
  readonly endpoint: RecordedEndpoint;
  readonly scratch: EventScratch;
  /** Larger events are relayed unread. */
  readonly maxEventBytes: number;
  /** What has to be undone in a stream; null if the client's own request went upstream. */
  readonly undo: UndoRules | null;
  /** Told the id of the response, once; null: nobody wants it. */
  readonly onResponseId: ((id: string) => void) | null;
}

/** What happens to a response on its way to the client. */
export interface ResponseUse {
  /** How it is read; null: it leaves no record. */
  readonly reading: ResponseReading | null;
  /** What the client called the model; null: what the engine calls it goes to the client. */
  readonly modelName: string | null;
  /** Field lines that say which replica it is from, and why; empty: the client is not told. */
  readonly routeLines: string;
}
