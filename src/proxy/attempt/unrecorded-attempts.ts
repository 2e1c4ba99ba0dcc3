import type { TraceContextFields } from '#otel/span';
import type { Replica, ReplicaPool } from '#replicas';
import type { Exchange } from '../exchange.ts';
import type { ProxyCollaborators, ProxySettings } from '../proxy-context.ts';
import { readIncomingTrace } from '../request/incoming-trace.ts';
import type { AttemptRequest } from './attempt.ts';
import { type Acquired, Attempts, type AttemptVariant } from './attempts.ts';
import type { Upload } from './upload.ts';

/** The body of a request that leaves no record: none, in memory, or sent as it comes. */
export type UnrecordedBody = readonly Buffer[] | Upload | null;

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** What a request is about: a stored response. */
export interface RequestSubject {
  /** The replica that has it; null: any may. */
  readonly home: Replica | null;
  /** What the client called the model that made it; null: what the engine calls it goes to the client. */
  readonly modelName: string | null;
}

/** The subject of a request that is about nothing the gateway knows. */
export const NO_SUBJECT: RequestSubject = { home: null, modelName: null };

/** What is sent, and what it is about. */
export interface UnrecordedRequest extends RequestSubject {
  readonly body: UnrecordedBody;
}

/**
 * The attempts of a request that leaves no record. It goes to its home, if it has one that can be used, else to the next
 * replica in turn, whatever that serves.
 */
export class UnrecordedAttempts extends Attempts {
  readonly #exchange: Exchange;
  readonly #body: readonly Buffer[] | null;
  readonly #upload: Upload | null;
  readonly #home: Replica | null;
  readonly #modelName: string | null;
  readonly #trace: TraceContextFields;
  readonly #pool: ReplicaPool;

  constructor(
    exchange: Exchange,
    { body, home, modelName }: UnrecordedRequest,
    { continuesTraces }: Pick<ProxySettings, 'continuesTraces'>,
    { telemetry, pool, log }: ProxyCollaborators,
  ) {
    const incoming = continuesTraces ? readIncomingTrace(exchange.head.fields, true) : undefined;
    const trace = telemetry.createUnrecordedContext(incoming);
    super(null, { requestId: exchange.requestId, traceId: trace.traceparent.slice(3, 35) }, log);
    this.#home = home;
    this.#modelName = modelName;
    this.#exchange = exchange;
    this.#body = isPieces(body) ? body : null;
    this.#upload = isPieces(body) ? null : body;
    this.#trace = trace;
    this.#pool = pool;
  }

  acquire(tried: ReadonlySet<Replica>): Acquired {
    const atHome = this.#home === null ? null : this.#pool.acquireOne(this.#home, null, tried);
    return atHome === null || atHome === 'busy' ? this.#pool.acquireAny(tried) : atHome;
  }

  begin(replica: Replica, { onFreshConnection, mayRetryStatus }: AttemptVariant): AttemptRequest {
    return {
      replica,
      exchange: this.#exchange,
      trace: this.#trace,
      body: this.#body,
      upload: this.#upload,
      onFreshConnection: onFreshConnection || this.#upload !== null,
      mayRepeat: true,
      // What a request of `pass` does is not known: one that may change something is not repeated (RFC 9110 9.2.2).
      mayRetryStatus: mayRetryStatus && SAFE_METHODS.has(this.#exchange.head.method),
      reading: null,
      modelName: this.#modelName,
      routeLines: '',
      stream: null,
      asksStream: false,
      observer: null,
    };
  }
}

function isPieces(body: UnrecordedBody): body is readonly Buffer[] {
  return Array.isArray(body);
}
