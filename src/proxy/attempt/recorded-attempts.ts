import type { Replica, ReplicaPool } from '#replicas';
import { sizeOf } from '#wire/message';
import type { RecordedEndpoint } from '../endpoints/recorded-endpoint.ts';
import { toUndoRules } from '../endpoints/undo-rules.ts';
import { AmbiguousMember, Failure } from '../failure.ts';
import type { ProxySettings, ProxyTools } from '../proxy-context.ts';
import { applyEdits } from '../request/edits/body-edits.ts';
import { editsOfUsage, type UsageOption, usageOptionsToSet } from '../request/edits/include-usage.ts';
import type { InspectedBody } from '../request/inspection/body-inspector.ts';
import { readFlag } from '../request/inspection/engine-flags.ts';
import { findRefusedName } from '../request/inspection/member-names.ts';
import type { RequestFacts } from '../request/inspection/request-facts.ts';
import type { HeldBody } from '../request/read-body.ts';
import { ownerOf, toResponseReader } from '../request/response-owner.ts';
import type { RelayedResponse } from '../response/relay.ts';
import type { AttemptObserver, AttemptRequest, RunningStream } from './attempt.ts';
import { type Acquired, Attempts, type AttemptVariant } from './attempts.ts';
import type { AnswerListener } from './copying.ts';
import { toUpstreamHead } from './headers.ts';
import {
  acquireInTurn,
  admitToReplica,
  holdsOf,
  isRestricted,
  type RecordedRequest,
  toIds,
  toQueueLeftMs,
} from './recorded-request.ts';

/** Bodies up to this size are kept until their records are made: several at a time cost less (docs/decisions/0017). */
const KEPT_BYTES = 16 * 1024;
/** Larger bodies go out on connections that cannot turn out dead, so that they need not be kept for a repeat. */
const FRESH_CONNECTION_BYTES = 1024 * 1024;

/** The attempts of a request that leaves a record. Keeps the request's body as long as an attempt may need it. */
export class RecordedAttempts extends Attempts implements AttemptObserver, RunningStream {
  readonly #request: RecordedRequest;
  readonly #settings: ProxySettings;
  readonly #tools: ProxyTools;
  readonly #facts: RequestFacts;
  readonly #model: string;
  /** What of its beginning decides where it goes; null: nothing. */
  readonly #prefix: ReturnType<ReplicaPool['matchPrefix']>;
  /** The replica that has the response which this one follows; null: unknown, or it cannot be used. */
  #home: Replica | null;
  readonly #held: HeldBody;
  readonly #isLarge: boolean;
  /** Null once no attempt needs it any more. */
  #body: Buffer | null;
  #wasSent = false;

  /**
   * @throws {Failure} `ambiguous_member`, `missing_model`, `model_not_found` for one that the client may not use,
   *   `previous_response_not_found` for a response that is not its own, or `rate_limit_exceeded` if it has not enough
   *   tokens left
   */
  constructor(
    request: RecordedRequest,
    held: HeldBody,
    inspected: InspectedBody,
    settings: ProxySettings,
    tools: ProxyTools,
  ) {
    super(request.recording, toIds(request), tools.log);
    this.#request = request;
    this.#settings = settings;
    this.#tools = tools;
    const { bytes } = inspected;
    const { pool } = tools;
    const facts = withModel(inspected.facts, request.endpoint, pool);
    const { exchange, client } = request;
    const readers = {
      isRestricted: isRestricted(exchange, client),
      mayFoldCase: facts.model !== null && pool.mayFoldCase(facts.model),
    };
    // A request with limits counts tokens, and so is restricted.
    const needsText = pool.choosesByPrefix || readers.isRestricted || readers.mayFoldCase;
    const text = needsText ? inspected.describeText() : null;
    const isAsItCame = text === null && facts === inspected.facts;
    const describeText = text === null ? inspected.describeText : () => text;
    request.recording.noteBody(isAsItCame ? inspected : { bytes, facts, describeText });
    const refused =
      findRefusedName(facts.names, readers) ?? (text?.names ? findRefusedName(text.names, readers) : null);
    if (refused !== null) throw new AmbiguousMember(refused);
    if (facts.model === null) throw new Failure('missing_model');
    this.#home = findHome(request, facts, settings, pool);
    admitToReplica(request, facts.alias?.name ?? facts.model, facts, text?.promptChars);
    this.#facts = facts;
    this.#model = facts.model;
    this.#prefix = pool.choosesByPrefix ? pool.matchPrefix(facts.model, text?.prefixHashes ?? []) : null;
    this.#held = held;
    this.#body = bytes;
    this.#isLarge = bytes.length > FRESH_CONNECTION_BYTES;
  }

  acquire(tried: ReadonlySet<Replica>): Acquired {
    const home = this.#home;
    if (home !== null) {
      const { pool } = this.#tools;
      const { recording } = this.#request;
      const atHome = pool.acquireOne(home, this.#model, tried);
      if (atHome === 'busy') {
        const wait = pool.waitForOne(home, this.#model, toQueueLeftMs(recording, this.#settings));
        if (wait !== 'overloaded') recording.noteWait(wait.result);
        return wait;
      }
      if (atHome !== null) return atHome;
    }
    const wanted = { model: this.#model, tried, prefixKey: this.#prefix?.key ?? null };
    return acquireInTurn(this.#request, this.#tools, this.#settings, wanted);
  }

  begin(replica: Replica, variant: AttemptVariant): AttemptRequest {
    const { withUsage, onFreshConnection, mayRetryStatus } = variant;
    const { exchange, endpoint, recording } = this.#request;
    const body = this.#body;
    if (body === null) throw new Error('the body was released before the last attempt');
    const facts = this.#facts;
    // Asked once more: a replica may have come, or become another engine, since the candidates were looked at.
    const refused = findRefusedName(facts.names, { isRestricted: false, mayFoldCase: replica.mayFoldCase });
    if (refused !== null) throw new AmbiguousMember(refused);
    recording.startAttempt(replica.config);
    this.#notePrefix(replica);
    const options = withUsage
      ? usageOptionsToSet(facts, endpoint, replica, this.#settings.asksRunningUsage)
      : [];
    const asksUsage = options.length > 0;
    const { engine } = replica;
    const modelName = facts.alias?.name ?? null;
    if (endpoint.keepsResponses) this.#noteStoring(replica);
    return {
      replica,
      exchange,
      trace: recording.trace,
      body: toUpstreamBody(body, facts, options),
      upload: null,
      onFreshConnection: onFreshConnection || this.#isLarge,
      // A replica may refuse usage, llama.cpp may answer that it is loading its model, and any may answer a retried status.
      mayRepeat: (asksUsage && !replica.acceptsIncludeUsage) || engine === 'llamacpp' || mayRetryStatus,
      mayRetryStatus,
      reading: {
        endpoint,
        scratch: this.#tools.scratch,
        maxEventBytes: this.#settings.maxEventBytes,
        onResponseId: endpoint.keepsResponses ? (id) => this.#noteResponse(id, replica) : null,
        undo: toUndoRules(options, facts, endpoint, engine),
        choicesPerPrompt: facts.n ?? 1,
        isTotalPerChoice: engine === 'llamacpp',
      },
      modelName,
      routeLines: this.#settings.tellsRoute ? recording.routeLines : '',
      stream: this,
      asksStream: readFlag(facts.stream, engine) === true,
      observer: this,
    };
  }

  get kind(): number {
    return this.#tools.pool.streamKindOf(this.#model);
  }

  get size(): number | null {
    return this.#request.recording.readPromptChars() ?? null;
  }

  get holds(): readonly number[] {
    return holdsOf(this.#request);
  }

  onWritten({ mayRepeat }: AttemptRequest, isReused: boolean): void {
    this.#request.recording.noteWritten();
    if (!isReused && !mayRepeat) this.#releaseBody();
  }

  onSent(
    { replica, exchange, reading, trace }: AttemptRequest,
    body: readonly Buffer[],
    sentMs: number,
  ): AnswerListener | null {
    const { sendListener } = this.#tools;
    const isFirst = !this.#wasSent;
    this.#wasSent = true;
    if (sendListener === null || reading === null || !isFirst || !sendListener.wants(this.#model))
      return null;
    const { viaName, withheldFields } = this.#settings;
    const bodyBytes = sizeOf(body);
    return sendListener.onSent({
      replica,
      model: this.#model,
      body,
      facts: this.#facts,
      sentMs,
      reading,
      hasWaited: this.#request.recording.queuedMs > 0,
      traceparent: trace.traceparent,
      toHeadText: (to, identity) =>
        toUpstreamHead(
          exchange.head,
          { host: to.hostField, path: to.pathPrefix + exchange.head.target },
          { ...identity, apiKey: to.config.apiKey, viaName, withheldFields },
          exchange.http,
          bodyBytes,
        ),
    });
  }

  onResponse({ replica, reading }: AttemptRequest, response: RelayedResponse): void {
    const { recording } = this.#request;
    this.#releaseBody();
    if (reading?.undo && response.isEventStream) replica.noteUsageAccepted();
    recording.noteResponse(replica.name, response);
  }

  #notePrefix(replica: Replica): void {
    const prefix = this.#prefix;
    if (prefix === null) return;
    const { blocks, share, lastSeed } = prefix;
    const last = lastSeed === null ? 'nowhere' : lastSeed === replica.seed ? 'here' : 'elsewhere';
    const chars = blocks * this.#settings.prefixBlockChars;
    this.#request.recording.notePrefix({ blocks, share, chars, last });
    this.#tools.pool.notePrefixSent(this.#model, prefix, replica);
  }

  #noteStoring(replica: Replica): void {
    const { recording } = this.#request;
    recording.noteStoring({
      isBackground: readFlag(this.#facts.background, replica.engine) !== false,
      handOver: () => replica.handOver(),
      follow: (held) => {
        const { slot } = replica;
        this.#tools.followResponse({ ...held, slot, limitRows: holdsOf(this.#request) });
      },
    });
  }

  override widen(): boolean {
    const wasNarrow = this.#home !== null;
    this.#home = null;
    return wasNarrow;
  }

  /**
   * Notes where the response with this id is kept, and whose it is. One whose id the request may have chosen is nobody's
   * where keys are asked for: it could be the id of another client's.
   */
  #noteResponse(id: string, replica: Replica): void {
    const { client, exchange } = this.#request;
    const { alias, choosesId } = this.#facts;
    if (client !== null && choosesId) return;
    this.#tools.pool.noteResponse(id, replica, {
      model: this.#model,
      calledAs: alias?.name ?? this.#model,
      tenant: client === null ? null : ownerOf(exchange.head.fields, client, this.#settings),
    });
  }

  /** Releases a large body: no attempt needs it any more. It is hashed first, when the event loop is idle. */
  #releaseBody(): void {
    if (this.#body === null || this.#body.length <= KEPT_BYTES) return;
    this.#body = null;
    setImmediate(() => {
      this.#request.recording.describeBody();
      this.#held.release();
    });
  }
}

/**
 * The replica that has the response which a request follows, as far as that is known.
 *
 * @throws {Failure} `previous_response_not_found` if the client may not have that response
 */
function findHome(
  { endpoint, exchange, client }: RecordedRequest,
  { previousResponseId }: RequestFacts,
  settings: ProxySettings,
  pool: ReplicaPool,
): Replica | null {
  if (!endpoint.keepsResponses || previousResponseId === undefined) return null;
  const reader = toResponseReader(exchange.head.fields, client, settings);
  const found = previousResponseId === null ? null : pool.findResponse(previousResponseId, reader);
  // What is not known may be another client's.
  if (found === null && reader !== null) throw new Failure('previous_response_not_found');
  return found?.home ?? null;
}

/** The facts, with the only model that is served if the request may leave its model out and does. */
function withModel(facts: RequestFacts, endpoint: RecordedEndpoint, pool: ReplicaPool): RequestFacts {
  if (facts.model !== null || endpoint.needsModel) return facts;
  return { ...facts, model: pool.onlyModel };
}

/**
 * The body as a replica gets it: with the model's name if the client wrote an alias, and with what
 * asks for usage. All other bytes are the client's.
 *
 * @returns the pieces to send, in order; the client's pieces are views of `body` and good as long as it is
 */
export function toUpstreamBody(
  body: Buffer,
  facts: RequestFacts,
  options: readonly UsageOption[],
): readonly Buffer[] {
  if (options.length === 0 && facts.alias === null) return [body];
  const edits = options.length === 0 ? [] : editsOfUsage(body, facts, options);
  if (facts.alias !== null) edits.push({ ...facts.alias.span, text: JSON.stringify(facts.model) });
  return applyEdits(
    body,
    edits.sort((a, b) => a.start - b.start),
  );
}
