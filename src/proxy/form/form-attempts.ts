import type { Replica } from '#replicas';
import type { AttemptObserver, AttemptRequest, RunningStream } from '../attempt/attempt.ts';
import { type Acquired, Attempts, type AttemptVariant } from '../attempt/attempts.ts';
import {
  acquireInTurn,
  admitToReplica,
  holdsOf,
  type RecordedRequest,
  toIds,
} from '../attempt/recorded-request.ts';
import { Upload } from '../attempt/upload.ts';
import { Failure } from '../failure.ts';
import type { ProxySettings, ProxyTools } from '../proxy-context.ts';
import type { RelayedResponse } from '../response/relay.ts';
import type { FormBody } from './form-body.ts';

/** A form says nothing of how many tokens it may use. */
const NO_LIMITS = { maxTokens: undefined, n: undefined };

/** The attempts of a request with a form. A form that is not held as a whole can be sent only once. */
export class FormAttempts extends Attempts implements AttemptObserver, RunningStream {
  readonly #request: RecordedRequest;
  readonly #settings: ProxySettings;
  readonly #tools: ProxyTools;
  readonly #form: FormBody;
  readonly #model: string;
  readonly #upload: Upload;

  /**
   * @throws {Failure} `missing_model`, `model_not_found` for one that the client may not use, or `rate_limit_exceeded` if
   *   the client has not enough tokens left
   */
  constructor(request: RecordedRequest, form: FormBody, settings: ProxySettings, tools: ProxyTools) {
    super(request.recording, toIds(request), tools.log);
    this.#request = request;
    this.#settings = settings;
    this.#tools = tools;
    const { model, alias, addedBytes } = form;
    if (model === null) throw new Failure('missing_model');
    admitToReplica(request, alias ?? model, NO_LIMITS, form.promptChars);
    this.#form = form;
    this.#model = model;
    const { maxBodyBytes, clientBodyMs } = settings;
    const limits = { maxBytes: maxBodyBytes + addedBytes, timeoutMs: clientBodyMs };
    const { framing } = request.exchange.head;
    const sent = framing.kind === 'length' ? { ...framing, bytes: framing.bytes + addedBytes } : framing;
    this.#upload = new Upload(form, sent, limits);
  }

  acquire(tried: ReadonlySet<Replica>): Acquired {
    const wanted = { model: this.#model, tried, prefixKey: null };
    return acquireInTurn(this.#request, this.#tools, this.#settings, wanted);
  }

  begin(replica: Replica, { onFreshConnection, mayRetryStatus }: AttemptVariant): AttemptRequest {
    const { exchange, endpoint, recording } = this.#request;
    this.#form.sendTo(replica);
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
        maxEventBytes: this.#settings.maxEventBytes,
        undo: null,
        onResponseId: null,
        choicesPerPrompt: 1,
        isTotalPerChoice: false,
      },
      modelName: this.#form.alias,
      routeLines: this.#settings.tellsRoute ? recording.routeLines : '',
      stream: this,
      asksStream: false,
      observer: this,
    };
  }

  get kind(): number {
    return this.#tools.pool.streamKindOf(this.#model);
  }

  get size(): number | null {
    return this.#form.promptChars ?? null;
  }

  get holds(): readonly number[] {
    return holdsOf(this.#request);
  }

  onWritten(): void {
    this.#request.recording.noteWritten();
  }

  onResponse({ replica }: AttemptRequest, response: RelayedResponse): void {
    this.#form.release();
    this.#request.recording.noteResponse(replica.name, response);
  }
}
