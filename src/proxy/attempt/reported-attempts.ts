import type { Lease, Replica } from '#replicas';
import type { RecordedEndpoint } from '../endpoints/recorded-endpoint.ts';
import type { Exchange } from '../exchange.ts';
import { Failure } from '../failure.ts';
import type { ProxySettings, ProxyTools } from '../proxy-context.ts';
import type { Recording } from '../record/recording.ts';
import { estimateTokens } from '../record/used-tokens.ts';
import { type ApiClient, mayUse } from '../request/api-clients.ts';
import type { RequestFacts } from '../request/inspection/request-facts.ts';
import type { Acquired, FailedAttemptCode } from './forward.ts';
import { logFailedAttempt } from './log-failed-attempt.ts';

/** One request that leaves a record. */
export interface RecordedRequest {
  readonly exchange: Exchange;
  readonly endpoint: RecordedEndpoint;
  /** Whose API key it presents; null if requests need none. */
  readonly client: ApiClient | null;
  readonly recording: Recording;
}

/**
 * What the attempts of all requests that leave a record have in common, whatever their bodies: the turn at a replica, and
 * the report to the record and the log.
 */
export abstract class ReportedAttempts {
  protected readonly request: RecordedRequest;
  protected readonly settings: ProxySettings;
  protected readonly tools: ProxyTools;

  constructor(request: RecordedRequest, settings: ProxySettings, tools: ProxyTools) {
    this.request = request;
    this.settings = settings;
    this.tools = tools;
  }

  /** A lease on a replica other than those tried, or a wait for one. */
  protected acquireInTurn(model: string, tried: ReadonlySet<Replica>, prefixKey: number | null): Acquired {
    const { pool } = this.tools;
    const { recording } = this.request;
    const lease = pool.acquire(model, tried, prefixKey);
    if (lease !== 'busy') return lease;
    const wait = pool.waitFor(model, { tried, prefixKey }, this.queueLeftMs);
    if (wait !== 'overloaded') recording.noteWait(wait.result);
    return wait;
  }

  /** How much longer the request may wait for a replica: `queueMs` is for all its waits together. */
  protected get queueLeftMs(): number {
    return this.settings.queueMs - this.request.recording.queuedMs;
  }

  hold({ gpuShare }: Lease): void {
    if (gpuShare !== null) this.request.recording.noteGpuShare(gpuShare);
  }

  withdraw(): void {
    this.request.recording.withdrawAttempt();
  }

  fail(replica: Replica, code: FailedAttemptCode, cause: unknown, statusCode?: number): void {
    const { exchange, recording } = this.request;
    recording.failAttempt(replica.name, code, statusCode);
    const ids = { requestId: exchange.requestId, traceId: recording.span.traceId };
    logFailedAttempt(this.tools.log, replica, { code, cause, ...ids });
  }

  finish(): void {
    this.request.recording.finishAttempt();
  }
}

/** Whether the client of a request may use only some models, or only so much. */
export function isRestricted({ admission }: Pick<Exchange, 'admission'>, client: ApiClient | null): boolean {
  return admission !== null || (client !== null && client.models !== null);
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
