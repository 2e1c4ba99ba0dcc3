import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RecordedEndpoint, RequestRecord } from '#otel/request-record.ts';
import type { Telemetry } from '#otel/start-telemetry.ts';
import type { ReplicaPool } from '../replicas/pool.ts';
import type { Replica } from '../replicas/replica.ts';
import type { BodyInspector } from './body-inspector.ts';
import { Exchange } from './exchange.ts';
import { Failure } from './failure.ts';
import { type ForwardPlan, forward } from './forward.ts';
import { toUpstreamHeaders } from './headers.ts';
import { isUsageAsked, spliceIncludeUsage } from './include-usage.ts';
import { type ByteBudget, readBody } from './read-body.ts';
import { type RecordedHeaders, Recording } from './recording.ts';
import type { ReplicaLog } from './replica-log.ts';
import type { RequestFacts } from './request-facts.ts';
import { StreamTap } from './response-tap.ts';
import type { AttemptRequest, SendSettings } from './send.ts';
import { undoRulesFor } from './undo-usage.ts';
import { UsageTally } from './usage.ts';

export interface ProxySettings extends SendSettings {
  readonly recordedHeaders: RecordedHeaders;
  readonly maxBodyBytes: number;
  readonly maxEventBytes: number;
  readonly clientBodyMs: number;
}

/** Where the proxy reports its own defects. A pino logger fits. */
export interface ProxyLog {
  error(fields: object, message: string): void;
}

export interface ProxyCollaborators {
  readonly pool: ReplicaPool;
  readonly telemetry: Telemetry;
  readonly inspector: BodyInspector;
  readonly bodyBudget: ByteBudget;
  readonly log: ProxyLog;
  readonly replicaLog: ReplicaLog;
  /** Called with every finished record, after it entered the queue. */
  readonly onRecord: (record: Readonly<RequestRecord>) => void;
}

/** What the client-facing listener does with requests. */
export interface ProxyService {
  /** Handles one request. `acceptBody` sends the 100 that a client may be waiting for. */
  handle(request: IncomingMessage, response: ServerResponse, acceptBody: () => void): void;
  /** From now on /healthz answers 503, and each connection is closed after the response under way. */
  startClosing(): void;
  /** Resolves when no request is in flight. */
  untilIdle(): Promise<void>;
  /** Ends the requests that are still in flight, and returns how many those were. */
  cutAll(): number;
}

const RECORDED_ENDPOINTS: ReadonlySet<string> = new Set<RecordedEndpoint>([
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
]);

const isRecorded = (path: string): path is RecordedEndpoint => RECORDED_ENDPOINTS.has(path);

/** Creates the proxy of one listener. */
export function createProxy(settings: ProxySettings, collaborators: ProxyCollaborators): ProxyService {
  const inFlight = new Set<Exchange>();
  let isClosing = false;
  let onIdle: (() => void) | null = null;

  function begin(request: IncomingMessage, response: ServerResponse): Exchange {
    if (isClosing) response.shouldKeepAlive = false;
    return new Exchange({ request, response, requestId: randomUUID(), lingerBytes: settings.maxBodyBytes });
  }

  /** Keeps the exchange in flight until it ends, whichever way. */
  function track(exchange: Exchange, onFinish: () => void): void {
    inFlight.add(exchange);
    exchange.onFinish = () => {
      inFlight.delete(exchange);
      onFinish();
      // A response that began before the shutdown promised to keep its connection: that ends here.
      if (isClosing) exchange.request.socket.end();
      if (inFlight.size === 0) onIdle?.();
    };
  }

  return {
    handle(request, response, acceptBody) {
      const path = pathOf(request.url ?? '');
      if (request.method === 'POST' && isRecorded(path)) {
        const exchange = begin(request, response);
        const recording = startRecording(exchange, path, settings, collaborators);
        track(exchange, () => {
          if (!exchange.isMalformed) collaborators.onRecord(recording.finish());
        });
        void handleRecorded(exchange, recording, path, acceptBody, settings, collaborators);
      } else if (request.method === 'GET' && path === '/v1/models') {
        const exchange = begin(request, response);
        track(exchange, () => undefined);
        void handleModels(exchange, settings, collaborators);
      } else if (request.method === 'GET' && path === '/healthz') {
        response.shouldKeepAlive &&= !isClosing;
        answerHealth(response, isClosing);
      } else {
        begin(request, response).fail('not_found');
      }
    },
    startClosing() {
      isClosing = true;
      for (const { response } of inFlight) if (!response.headersSent) response.shouldKeepAlive = false;
    },
    untilIdle() {
      if (inFlight.size === 0) return Promise.resolve();
      return new Promise((resolve) => {
        onIdle = resolve;
      });
    },
    cutAll() {
      const cut = [...inFlight];
      for (const exchange of cut) exchange.cut();
      return cut.length;
    },
  };
}

/** The path of a request target, as it came: nothing is decoded or collapsed. */
function pathOf(target: string): string {
  const query = target.indexOf('?');
  return query === -1 ? target : target.slice(0, query);
}

function answerHealth(response: ServerResponse, isClosing: boolean): void {
  const body = isClosing ? 'shutting down' : 'ok';
  const status = isClosing ? 503 : 200;
  response.writeHead(status, { 'Content-Type': 'text/plain', 'Content-Length': body.length });
  response.end(body);
}

function startRecording(
  exchange: Exchange,
  endpoint: RecordedEndpoint,
  settings: ProxySettings,
  { telemetry }: ProxyCollaborators,
): Recording {
  const { traceparent } = exchange.request.headers;
  const span = telemetry.startRequestSpan({
    method: 'POST',
    route: endpoint,
    incomingTraceparent: Array.isArray(traceparent) ? undefined : traceparent,
  });
  return new Recording(exchange, span, endpoint, settings.recordedHeaders);
}

/** One recorded request: read, understand, forward. Ends with an answer on every path. */
async function handleRecorded(
  exchange: Exchange,
  recording: Recording,
  endpoint: RecordedEndpoint,
  acceptBody: () => void,
  settings: ProxySettings,
  collaborators: ProxyCollaborators,
): Promise<void> {
  try {
    using body = await readBody(exchange.request, {
      maxBytes: settings.maxBodyBytes,
      timeoutMs: settings.clientBodyMs,
      budget: collaborators.bodyBudget,
      onAccepted: acceptBody,
    });
    const inspected = await collaborators.inspector.inspect(body.chunks, endpoint);
    const { bytes, facts } = inspected;
    recording.noteFacts(facts);
    const plan = planRecorded(exchange, recording, endpoint, bytes, facts, settings, collaborators);
    const forwarded = forward(exchange, plan, settings);
    // The first attempt is on its way: what follows costs the client nothing.
    recording.noteText(inspected.describeText());
    await forwarded;
  } catch (error) {
    fail(exchange, error, collaborators.log);
  }
}

function planRecorded(
  exchange: Exchange,
  recording: Recording,
  endpoint: RecordedEndpoint,
  body: Buffer,
  facts: RequestFacts,
  settings: ProxySettings,
  collaborators: ProxyCollaborators,
): ForwardPlan {
  const { pool, replicaLog } = collaborators;
  const canStreamUsage = facts.stream && endpoint !== '/v1/embeddings';
  return {
    acquire: (tried) => pool.acquire(facts.model, tried),
    toAttempt(replica, { withUsage, onFreshConnection }) {
      const isInjected = canStreamUsage && withUsage && !isUsageAsked(facts, replica.engine);
      return {
        ...attemptBase(exchange, replica, recording.traceparent),
        body: isInjected ? spliceIncludeUsage(body, facts) : [body],
        onFreshConnection,
        didInjectUsage: isInjected,
        relay: {
          maxEventBytes: settings.maxEventBytes,
          undo: isInjected
            ? undoRulesFor(replica.engine, endpoint, facts.streamOptions, replica.fingerprint)
            : null,
          createStreamTap: () => new StreamTap(exchange.arrivedMs, toUsageTally(replica, facts)),
        },
        onResponse: (_replica, isEventStream, responseFacts) => {
          recording.noteResponse(isEventStream, responseFacts);
          replicaLog.answered(replica, recording.span.traceId);
        },
      };
    },
    onTry(replica) {
      if (replica === null) recording.takeBackTry();
      else recording.noteTry(replica.config);
    },
    onFailedTry(replica, code, cause, statusCode) {
      recording.noteFailedTry(replica.name, code, statusCode);
      replicaLog.failedTry(replica, { code, cause, traceId: recording.span.traceId });
    },
    onLastTry: () => recording.noteLastTry(),
  };
}

function toUsageTally(replica: Replica, facts: RequestFacts): UsageTally {
  return new UsageTally({
    choicesPerPrompt: facts.n ?? 1,
    isTotalPerChoice: replica.engine === 'llamacpp',
  });
}

/** GET /v1/models: answered by the next replica in turn, without a record. */
async function handleModels(
  exchange: Exchange,
  settings: ProxySettings,
  { pool, telemetry, log, replicaLog }: ProxyCollaborators,
): Promise<void> {
  const traceparent = telemetry.createUnsampledTraceparent();
  const traceId = traceparent.slice(3, 35);
  exchange.request.resume();
  try {
    await forward(
      exchange,
      {
        acquire: (tried) => pool.acquireAny(tried),
        toAttempt: (replica, { onFreshConnection }) => ({
          ...attemptBase(exchange, replica, traceparent),
          body: null,
          onFreshConnection,
          didInjectUsage: false,
          relay: { maxEventBytes: settings.maxEventBytes, undo: null, createStreamTap: null },
          onResponse: () => replicaLog.answered(replica, traceId),
        }),
        onTry: () => undefined,
        onLastTry: () => undefined,
        onFailedTry: (replica, code, cause) => replicaLog.failedTry(replica, { code, cause, traceId }),
      },
      settings,
    );
  } catch (error) {
    fail(exchange, error, log);
  }
}

function attemptBase(
  exchange: Exchange,
  replica: Replica,
  traceparent: string,
): Pick<AttemptRequest, 'replica' | 'exchange' | 'method' | 'path' | 'headers'> {
  const { request, requestId } = exchange;
  return {
    replica,
    exchange,
    method: request.method === 'GET' ? 'GET' : 'POST',
    path: request.url ?? '/',
    headers: toUpstreamHeaders(request, { requestId, traceparent, apiKey: replica.config.apiKey }),
  };
}

function fail(exchange: Exchange, error: unknown, log: ProxyLog): void {
  if (!(error instanceof Failure)) {
    // A defect of ours. The message is left out: it could quote the request.
    const name = error instanceof Error ? error.name : typeof error;
    const stack =
      error instanceof Error ? error.stack?.split('\n').filter((line) => /^\s+at /.test(line)) : [];
    log.error({ error: name, stack }, 'request handling failed');
  }
  exchange.failWith(error);
}
