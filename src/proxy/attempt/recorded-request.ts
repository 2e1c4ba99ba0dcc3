import { type ApiClient, mayUse } from '#proxy/entry';
import type { Replica } from '#replicas';
import type { RecordedEndpoint } from '../endpoints/recorded-endpoint.ts';
import type { Exchange } from '../exchange.ts';
import { Failure } from '../failure.ts';
import type { ProxySettings, ProxyTools } from '../proxy-context.ts';
import type { Recording } from '../record/recording.ts';
import { estimateTokens } from '../record/used-tokens.ts';
import type { RequestFacts } from '../request/inspection/request-facts.ts';
import type { Acquired } from './attempts.ts';

/** One request that leaves a record. */
export interface RecordedRequest {
  readonly exchange: Exchange;
  readonly endpoint: RecordedEndpoint;
  /** Whose API key it presents; null if requests need none. */
  readonly client: ApiClient | null;
  readonly recording: Recording;
}

/** What the request is called in the log. */
export function toIds({ exchange, recording }: RecordedRequest): { requestId: string; traceId: string } {
  return { requestId: exchange.requestId, traceId: recording.span.traceId };
}

/** A lease on a replica in turn, other than those tried, or a wait for one. */
export function acquireInTurn(
  { recording }: RecordedRequest,
  { pool }: Pick<ProxyTools, 'pool'>,
  settings: ProxySettings,
  wanted: {
    readonly model: string;
    readonly tried: ReadonlySet<Replica>;
    readonly prefixKey: number | null;
  },
): Acquired {
  const { model, tried, prefixKey } = wanted;
  const lease = pool.acquire(model, tried, prefixKey);
  if (lease !== 'busy') return lease;
  const wait = pool.waitFor(model, wanted, toQueueLeftMs(recording, settings));
  if (wait !== 'overloaded') recording.noteWait(wait.result);
  return wait;
}

/** How much longer the request may wait for a replica: `queueMs` is for all its waits together. */
export function toQueueLeftMs({ queuedMs }: Recording, { queueMs }: ProxySettings): number {
  return queueMs - queuedMs;
}

/** Whether the client of a request may use only some models, or only so much. */
export function isRestricted({ admission }: Pick<Exchange, 'admission'>, client: ApiClient | null): boolean {
  return admission !== null || (client !== null && client.models !== null);
}

/** Where the request holds places in the limits of its client and its tenant. */
export function holdsOf({ exchange }: RecordedRequest): readonly number[] {
  return exchange.admission?.rows ?? [];
}

/**
 * Lets a request with a known body go on to a replica.
 *
 * @param name what the client calls the model
 * @param promptChars undefined if the text is not known
 * @throws {Failure} `model_not_found` for a model that the client may not use, or `rate_limit_exceeded` if the client has
 *   not enough tokens left
 */
export function admitToReplica(
  { exchange, client, recording }: RecordedRequest,
  name: string,
  limits: Pick<RequestFacts, 'maxTokens' | 'n'>,
  promptChars: number | undefined,
): void {
  exchange.modelName = name;
  if (client !== null && !mayUse(client, name)) throw new Failure('model_not_found');
  if (exchange.admission !== null) {
    const estimate = estimateTokens(limits, promptChars);
    recording.noteEstimate(estimate);
    if (!exchange.admission.reserveTokens(estimate.total)) throw new Failure('rate_limit_exceeded');
  }
  recording.span.startOperation();
}
