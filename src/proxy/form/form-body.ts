import type { SharedLimit } from '#shared-memory';
import type { HttpExchange, RequestBodySink } from '#wire/client';
import type { UploadSink, UploadSource } from '../attempt/upload.ts';
import type { Abandonable, Exchange } from '../exchange.ts';
import { AmbiguousMember, Failure, type FailureCode } from '../failure.ts';
import { replaceInChunks } from '../request/edits/body-edits.ts';
import { findRefusedName, type Readers, type RefusedName } from '../request/inspection/member-names.ts';
import { type ModelAliases, resolveModel, type UsedAlias } from '../request/model-aliases.ts';
import { ChunkList, type ReadBodySettings } from '../request/read-body.ts';
import { FormReader, FormSyntaxError } from './form-reader.ts';
import { parseBoundary } from './part-head.ts';

export interface FormBodySettings extends ReadBodySettings {
  /** How much is held while the model is not known. */
  readonly maxHeldBytes: number;
  /** The model of a form that has not named one yet; null: the form must name it before it can be sent. */
  readonly onlyModel: string | null;
  readonly aliases: ModelAliases;
  /** Whether its client may use only some models, or only so much. */
  readonly isRestricted: boolean;
  /** Whether a replica of a model could take a name in another case for its own. */
  readonly mayFoldCase: (model: string) => boolean;
}

/** How much is held while the request waits for a replica: a connection that is not read does not show that it closes. */
const WAITING_BYTES = 64 * 1024;

/**
 * The body of a form, which is read as it comes from the client and sent on. Only an alias of a model is replaced in it.
 * It is held until its model is known and a replica takes it. Whatever is wrong with it ends the upload, so that no
 * replica gets all of it.
 */
export class FormBody implements RequestBodySink, UploadSource, Abandonable {
  readonly #exchange: Exchange;
  readonly #http: HttpExchange;
  readonly #settings: FormBodySettings;
  readonly #budget: SharedLimit;
  readonly #reader: FormReader;
  #held = new ChunkList();
  #heldBytes = 0;
  #sizeBytes = 0;
  /** Where the body goes; null while it is held. */
  #sink: UploadSink | null = null;
  #isSinkBlocked = false;
  #isPaused = false;
  #isComplete = false;
  #failure: FailureCode | null = null;
  #model: string | null = null;
  /** Whether the replica that the form was sent to could take a name in another case for its own. */
  #isFolded = false;
  /** What the form calls its model. */
  #name: string | null = null;
  #alias: UsedAlias | null = null;
  #onRoutable: (() => void) | null = null;

  /** @throws {Failure} `unsupported_encoding`, `request_too_large` or `invalid_form`, before a byte is read */
  constructor(exchange: Exchange, settings: FormBodySettings) {
    const { http, head } = exchange;
    const { fields, framing } = head;
    const encoding = fields.get('content-encoding');
    if (encoding !== undefined && encoding.toLowerCase() !== 'identity') {
      throw new Failure('unsupported_encoding');
    }
    if (framing.kind === 'length' && framing.bytes > settings.maxBytes)
      throw new Failure('request_too_large');
    const boundary = parseBoundary(fields.get('content-type'));
    if (boundary === null) throw new Failure('invalid_form');
    this.#exchange = exchange;
    this.#http = http;
    this.#settings = settings;
    this.#budget = settings.budget;
    this.#reader = new FormReader(boundary);
  }

  /** The bytes that have come so far. */
  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** Unicode code points of the form's prompt so far; undefined if it has none. */
  get promptChars(): number | undefined {
    return this.#reader.promptChars;
  }

  /** The model that the request is sent for. */
  get model(): string | null {
    return this.#model;
  }

  /** The name that the form has instead of the model's own; null: it has none. */
  get alias(): string | null {
    return this.#alias?.name ?? null;
  }

  /** How much longer the body is for the replica than it came from the client; negative: shorter. */
  get addedBytes(): number {
    if (this.#alias === null || this.#model === null) return 0;
    const { start, end } = this.#alias.span;
    return Buffer.byteLength(this.#model) - (end - start);
  }

  /** The whole body, if all of it is held. */
  get heldWhole(): readonly Buffer[] | null {
    return this.#isComplete && this.#sink === null ? this.#held.items : null;
  }

  /**
   * Begins to read. Resolves when it is known for which model the request is. Rejects with a Failure. If the client
   * leaves, the promise never settles.
   */
  async untilRoutable(exchange: Exchange): Promise<void> {
    exchange.startWork(this);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#onRoutable = resolve;
    this.#http.readBody(this, this.#settings.timeoutMs);
    await promise;
    exchange.endWork();
    if (this.#failure !== null) throw new Failure(this.#failure);
  }

  onData(view: Buffer): void {
    if (this.#failure !== null) return;
    this.#sizeBytes += view.length;
    if (this.#sizeBytes > this.#settings.maxBytes) {
      this.#fail('request_too_large');
    } else if (this.#read(() => this.#reader.push(view))) {
      if (this.#sink === null) this.#hold(view);
      else this.#sink.onData(view);
    }
  }

  onEnd(): void {
    if (this.#failure !== null || !this.#read(() => this.#reader.end())) return;
    this.#isComplete = true;
    this.#model ??= this.#settings.onlyModel;
    if (this.#onRoutable === null) this.#sink?.onEnd();
    else if (this.#model === null) this.#fail('missing_model');
    else this.#settle();
  }

  onTimeout(): void {
    if (this.#failure !== null) return;
    if (this.#sink !== null) this.#sink.onTimeout();
    else this.#fail(this.#isPaused ? 'upstream_timeout' : 'request_timeout');
  }

  /**
   * The form goes to a replica. Throws an AmbiguousMember if that is not possible: the replica may have come, or become
   * another engine, since its field came.
   */
  sendTo({ mayFoldCase }: Pick<Readers, 'mayFoldCase'>): void {
    this.#isFolded ||= mayFoldCase;
    const refused = this.#findRefused();
    if (refused !== null) throw new AmbiguousMember(refused);
  }

  /** Passes what is held to the sink, and everything that comes from now on. */
  readBody(sink: UploadSink): void {
    const held = this.#held.items;
    this.#sink = sink;
    for (const chunk of held) sink.onData(chunk);
    this.release();
    if (this.#failure !== null) sink.fail(this.#failure);
    else if (this.#isComplete) sink.onEnd();
    else if (!this.#isSinkBlocked) this.resumeReading();
  }

  stopReadingBody(): void {
    this.#http.stopReadingBody();
  }

  pauseReading(): void {
    this.#isSinkBlocked = true;
    this.#http.pauseReading();
  }

  resumeReading(): void {
    this.#isSinkBlocked = false;
    this.#isPaused = false;
    this.#http.resumeReading();
  }

  abandon(): void {
    this.release();
  }

  /** Drops what is held. May be called more than once. */
  release(): void {
    this.#budget.release(this.#heldBytes);
    this.#heldBytes = 0;
    this.#held = new ChunkList();
  }

  /** Reads along. Returns false if the form has failed. */
  #read(step: () => void): boolean {
    try {
      step();
    } catch (error) {
      if (!(error instanceof FormSyntaxError)) throw error;
      this.#fail('invalid_form');
      return false;
    }
    return this.#readName() && this.#checkFields();
  }

  #readName(): boolean {
    const name = this.#reader.model;
    if (name === null || name === this.#name) return true;
    this.#name = name;
    const model = resolveModel(name, this.#settings.aliases);
    if (this.#model !== null) return this.#checkLateName(name, model);
    this.#model = model;
    if (name !== model) this.#alias = { name, span: this.#reader.modelSpan };
    return true;
  }

  #checkFields(): boolean {
    const refused = this.#findRefused();
    if (refused === null) return true;
    this.#exchange.refusedName = refused;
    this.#fail('ambiguous_member');
    return false;
  }

  #findRefused(): RefusedName | null {
    const { lookalike } = this.#reader;
    if (lookalike === null) return null;
    const { isRestricted, mayFoldCase } = this.#settings;
    const isFolded = this.#isFolded || (this.#model !== null && mayFoldCase(this.#model));
    return findRefusedName({ lookalike, repeated: null }, { isRestricted, mayFoldCase: isFolded });
  }

  /** The form was sent for the only model before it named one. Returns false if it has failed. */
  #checkLateName(name: string, model: string): boolean {
    if (model !== this.#model) this.#fail('model_not_found');
    // How long the body is was said to the replica, and the answer may have begun.
    else if (name !== model) this.#fail('late_model');
    return this.#failure === null;
  }

  #hold(view: Buffer): void {
    if (!this.#budget.tryAcquire(view.length)) {
      this.#fail('overloaded');
      return;
    }
    this.#heldBytes += view.length;
    // A view keeps its whole read in memory: a much smaller one is copied.
    this.#held.push(view.length * 2 < view.buffer.byteLength ? Buffer.from(view) : view);
    const { aliases, maxHeldBytes, onlyModel } = this.#settings;
    const isLate = this.#heldBytes > maxHeldBytes;
    // The only model may have an alias, which can be replaced only before the form is sent.
    if (aliases === null || isLate) this.#model ??= onlyModel;
    if (this.#model !== null) this.#settle();
    else if (isLate) this.#fail('late_model');
    if (this.#model !== null && this.#heldBytes > WAITING_BYTES) {
      this.#isPaused = true;
      this.#http.pauseReading();
    }
  }

  #fail(code: FailureCode): void {
    this.#failure = code;
    this.release();
    this.#http.stopReadingBody();
    if (this.#sink !== null) this.#sink.fail(code);
    else this.#settle();
  }

  #settle(): void {
    if (this.#onRoutable === null) return;
    if (this.#alias !== null && this.#model !== null && this.#failure === null) {
      // All of the part has come: its name is known when the boundary after it has been read.
      this.#held = replaceInChunks(this.#held.items, { ...this.#alias.span, text: this.#model });
    }
    this.#onRoutable();
    this.#onRoutable = null;
  }
}
