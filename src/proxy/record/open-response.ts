import type { HttpFacts } from '#otel/record';
import type { RequestRecord } from '#otel/record/registry';
import type { ParkedSpan } from '#otel/span';
import type { Ending } from '../exchange.ts';
import type { RelayedResponse } from '../response/relay.ts';
import { StreamTap } from '../response/stream-tap.ts';

/** An attempt at a replica that may go on with the response after its answer. */
export interface StoringAttempt {
  /** Whether the request asks for that: a replica then goes on without its client, too. */
  readonly isBackground: boolean;
  /** The replica goes on. Called at most once, before the lease is given back. */
  readonly handOver: () => void;
  /** The rest of it, when the record is made. */
  readonly follow: (held: HeldResponse) => void;
}

/** A response that goes on, with the record that has to wait for its end. */
export interface HeldResponse {
  /** What the engine calls the response; null: the client left before the gateway learned it. */
  readonly id: string | null;
  readonly record: RequestRecord;
  readonly http: HttpFacts;
  readonly span: ParkedSpan;
  /** What its client was charged for it. */
  readonly chargedTokens: number;
}

/** How an answer that began, or did not, stands. */
interface AnswerState {
  readonly isBackground: boolean;
  /** Whether the replica may have read all of the request. */
  readonly isWritten: boolean;
  readonly status: number;
  /** Null: not known, or complete. */
  readonly ending: Ending | null;
}

/** Endings that end the answer, and not what the replica does. */
const LEFT: ReadonlySet<Ending | null> = new Set(['client_closed', 'shutting_down']);

/**
 * Whether the replica goes on with a response after its answer, and what it is called: it says so in a whole answer, or
 * the answer to a request with `background` ends before the response does. Null: it does not.
 */
export function findOpenResponse(
  response: RelayedResponse | null,
  { isBackground, isWritten, status, ending }: AnswerState,
): { readonly id: string | null } | null {
  const hasLeft = isBackground && LEFT.has(ending);
  if (response === null) return hasLeft && isWritten ? UNNAMED : null;
  if (status >= 300) return null;
  const { facts } = response;
  if (facts === null) return isBackground ? UNNAMED : null;
  const id = facts.responseId;
  if (facts instanceof StreamTap) {
    return isBackground && !facts.isWhole && (id !== null || hasLeft) ? { id } : null;
  }
  return facts.state === 'open' || (hasLeft && facts.state === null) ? { id } : null;
}

const UNNAMED = { id: null };
