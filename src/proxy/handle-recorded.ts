import type { RecordedEndpoint } from '#otel/encode/recorded-endpoint.ts';
import type { Replica } from '../replicas/data/replica.ts';
import { type ForwardPlan, forward } from './attempt/forward.ts';
import { failExchange } from './defect.ts';
import type { Exchange } from './exchange.ts';
import { Failure } from './failure.ts';
import type { ProxyCollaborators, ProxySettings } from './proxy-context.ts';
import { Recording } from './record/recording.ts';
import type { InspectedBody } from './request/body-inspector.ts';
import { isUsageToBeAsked, spliceIncludeUsage } from './request/include-usage.ts';
import { type HeldBody, readBody } from './request/read-body.ts';
import type { RequestFacts } from './request/request-facts.ts';
import { StreamTap } from './response/response-tap.ts';
import { undoRulesFor } from './response/undo-usage.ts';
import { UsageTally } from './response/usage.ts';

/** One request that leaves a record. */
export interface RecordedRequest {
  readonly exchange: Exchange;
  readonly endpoint: RecordedEndpoint;
  readonly recording: Recording;
}

/** Starts the span and the record of a request that has just arrived. */
export function startRecorded(
  exchange: Exchange,
  endpoint: RecordedEndpoint,
  { recordedHeaders }: ProxySettings,
  { telemetry }: ProxyCollaborators,
): RecordedRequest {
  const span = telemetry.startRequestSpan({
    method: 'POST',
    route: endpoint,
    incomingTraceparent: exchange.head.fields.get('traceparent'),
  });
  return { exchange, endpoint, recording: new Recording(exchange, span, endpoint, recordedHeaders) };
}

/** One recorded request: read, understand, forward. Ends with an answer on every path. */
export async function handleRecorded(
  request: RecordedRequest,
  settings: ProxySettings,
  collaborators: ProxyCollaborators,
): Promise<void> {
  const { exchange } = request;
  try {
    const reading = readBody(exchange, {
      maxBytes: settings.maxBodyBytes,
      timeoutMs: settings.clientBodyMs,
      budget: collaborators.bodyBudget,
    });
    using body = reading instanceof Promise ? await reading : reading;
    const inspecting = collaborators.inspector.inspect(body.chunks, request.endpoint);
    const inspected = inspecting instanceof Promise ? await inspecting : inspecting;
    await forward(exchange, planRecorded(request, body, inspected, settings, collaborators), settings);
  } catch (error) {
    failExchange(exchange, error, collaborators.log);
  }
}

/** Bodies up to this size are kept until their records are made: several at a time cost less (docs/decisions/0017). */
const KEPT_BYTES = 16 * 1024;
/** Larger bodies go by connections that cannot turn out dead, so that they need not be kept for a repeat. */
const FRESH_CONNECTION_BYTES = 1024 * 1024;

/** The bytes of a request's body, for as long as an attempt may need them. */
class SentBody {
  bytes: Buffer | null;
  readonly isLarge: boolean;
  readonly #held: HeldBody;
  readonly #recording: Recording;

  constructor(bytes: Buffer, held: HeldBody, recording: Recording) {
    this.bytes = bytes;
    this.isLarge = bytes.length > FRESH_CONNECTION_BYTES;
    this.#held = held;
    this.#recording = recording;
  }

  /** No attempt needs them any more. They are hashed first, when nothing else is to be done in this turn. */
  release(): void {
    if (this.bytes === null || this.bytes.length <= KEPT_BYTES) return;
    this.bytes = null;
    setImmediate(() => {
      this.#recording.describeBody();
      this.#held.release();
    });
  }
}

function planRecorded(
  { exchange, endpoint, recording }: RecordedRequest,
  held: HeldBody,
  inspected: InspectedBody,
  { maxEventBytes, queueMs }: ProxySettings,
  { pool, replicaLog }: ProxyCollaborators,
): ForwardPlan {
  const { facts } = inspected;
  const { model } = facts;
  const text = pool.choosesByPrefix ? inspected.describeText() : null;
  recording.noteBody(text === null ? inspected : { ...inspected, describeText: () => text });
  if (model === null) throw new Failure('missing_model');
  const body = new SentBody(inspected.bytes, held, recording);
  const prefixKey = text && pool.prefixKeyOf(model, text.prefixHashes ?? []);
  return {
    acquire(tried) {
      const lease = pool.acquire(model, tried, prefixKey);
      if (lease !== 'busy') return lease;
      const wait = pool.waitFor(model, { tried, prefixKey }, queueMs - recording.queuedMs);
      if (wait !== 'overloaded') recording.noteWait(wait.result);
      return wait;
    },
    toAttempt(replica, { withUsage, onFreshConnection }) {
      const { bytes } = body;
      if (bytes === null) throw new Error('the body was released before the last attempt');
      const isInjected = withUsage && isUsageToBeAsked(facts, endpoint, replica);
      // Whoever may have to be asked once more, or may say that it still loads its model.
      const mayRepeat = (isInjected && !replica.acceptsIncludeUsage) || replica.engine === 'llamacpp';
      return {
        replica,
        exchange,
        traceparent: recording.traceparent,
        body: isInjected ? spliceIncludeUsage(bytes, facts) : [bytes],
        onFreshConnection: onFreshConnection || body.isLarge,
        didInjectUsage: isInjected,
        relay: {
          maxEventBytes,
          undo: isInjected ? undoRulesFor(replica.engine, endpoint, facts.streamOptions) : null,
          createStreamTap: () => new StreamTap(exchange.arrivedMs, toUsageTally(replica, facts)),
        },
        onWritten(isReused) {
          if (!isReused && !mayRepeat) body.release();
        },
        onResponse(response) {
          body.release();
          if (isInjected && response.isEventStream) replica.noteUsageAccepted();
          recording.noteResponse(replica.name, response);
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
