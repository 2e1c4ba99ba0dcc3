import type { Lease } from '../../replicas/data/lease.ts';
import type { Replica } from '../../replicas/data/replica.ts';
import type { Acquired, Attempts, AttemptVariant, FailedAttemptCode } from '../attempt/forward.ts';
import { logFailedAttempt } from '../attempt/log-failed-attempt.ts';
import type { RecordedRequest } from '../attempt/recorded-attempts.ts';
import type { AttemptObserver, AttemptRequest } from '../attempt/send.ts';
import { Upload } from '../attempt/upload.ts';
import { Failure } from '../failure.ts';
import type { ProxySettings, ProxyTools } from '../proxy-context.ts';
import { estimateTokens } from '../record/used-tokens.ts';
import { mayUse } from '../request/api-clients.ts';
import type { RelayedResponse } from '../response/relay.ts';
import type { FormBody } from './form-body.ts';

/** The attempts of a request with a form. A form that is not held as a whole can be sent only once. */
export class FormAttempts implements Attempts, AttemptObserver {
  readonly #request: RecordedRequest;
  readonly #form: FormBody;
  readonly #model: string;
  readonly #upload: Upload;
  readonly #settings: ProxySettings;
  readonly #tools: ProxyTools;

  /**
   * @throws {Failure} `missing_model`, `model_not_found` for one that the client may not use, or `rate_limit_exceeded` if
   *   the client has not enough tokens left
   */
  constructor(request: RecordedRequest, form: FormBody, settings: ProxySettings, tools: ProxyTools) {
    const { exchange, client, recording } = request;
    const { model, alias, addedBytes } = form;
    if (model === null) throw new Failure('missing_model');
    if (client !== null && !mayUse(client, alias ?? model)) throw new Failure('model_not_found');
    if (exchange.admission !== null) {
      const estimate = estimateTokens({ maxTokens: undefined, n: undefined }, form.promptChars);
      recording.noteEstimate(estimate);
      if (!exchange.admission.reserveTokens(estimate.total)) throw new Failure('rate_limit_exceeded');
    }
    recording.span.startOperation();
    this.#request = request;
    this.#form = form;
    this.#model = model;
    this.#settings = settings;
    this.#tools = tools;
    const { maxBodyBytes, clientBodyMs } = settings;
    const limits = { maxBytes: maxBodyBytes + addedBytes, timeoutMs: clientBodyMs };
    const { framing } = exchange.head;
    const sent = framing.kind === 'length' ? { ...framing, bytes: framing.bytes + addedBytes } : framing;
    this.#upload = new Upload(form, sent, limits);
  }

  acquire(tried: ReadonlySet<Replica>): Acquired {
    const { pool } = this.#tools;
    const { recording } = this.#request;
    const lease = pool.acquire(this.#model, tried);
    if (lease !== 'busy') return lease;
    const context = { tried, prefixKey: null };
    const wait = pool.waitFor(this.#model, context, this.#settings.queueMs - recording.queuedMs);
    if (wait !== 'overloaded') recording.noteWait(wait.result);
    return wait;
  }

  hold({ gpuShare }: Lease): void {
    if (gpuShare !== null) this.#request.recording.noteGpuShare(gpuShare);
  }

  begin(replica: Replica, { onFreshConnection, mayRetryStatus }: AttemptVariant): AttemptRequest {
    const { exchange, endpoint, recording } = this.#request;
    recording.startAttempt(replica.config);
    const body = this.#form.heldWhole;
    return {
      replica,
      exchange,
      trace: recording.trace,
      body,
      upload: body === null ? this.#upload : null,
      onFreshConnection: onFreshConnection || body === null,
      mayRepeat: true,
      mayRetryStatus,
      reading: {
        endpoint,
        scratch: this.#tools.scratch,
        modelName: this.#form.alias,
        maxEventBytes: this.#settings.maxEventBytes,
        undo: null,
        onResponseId: null,
        choicesPerPrompt: 1,
        isTotalPerChoice: false,
      },
      observer: this,
    };
  }

  onWritten(): void {
    this.#request.recording.noteWritten();
  }

  onResponse({ replica }: AttemptRequest, response: RelayedResponse): void {
    this.#form.release();
    this.#request.recording.noteResponse(replica.name, response);
  }

  widen(): boolean {
    return false;
  }

  withdraw(): void {
    this.#request.recording.withdrawAttempt();
  }

  fail(replica: Replica, code: FailedAttemptCode, cause: unknown, statusCode?: number): void {
    const { recording } = this.#request;
    recording.failAttempt(replica.name, code, statusCode);
    logFailedAttempt(this.#tools.log, replica, { code, cause, traceId: recording.span.traceId });
  }

  finish(): void {
    this.#request.recording.finishAttempt();
  }
}
