import type { RecordedEndpoint } from '#otel/request-record.ts';
import type { RequestTextDescription } from '../record/request-text.ts';
import type { Replica } from '../replicas/replica.ts';
import { failExchange, toAttemptBase } from './attempt-base.ts';
import type { Exchange } from './exchange.ts';
import { type ForwardPlan, forward } from './forward.ts';
import { isUsageToBeAsked, spliceIncludeUsage } from './include-usage.ts';
import type { ProxyCollaborators, ProxySettings } from './proxy-context.ts';
import { readBody } from './read-body.ts';
import { Recording } from './recording.ts';
import type { RequestFacts } from './request-facts.ts';
import { StreamTap } from './response-tap.ts';
import { undoRulesFor } from './undo-usage.ts';
import { UsageTally } from './usage.ts';

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
  const { traceparent } = exchange.request.headers;
  const span = telemetry.startRequestSpan({
    method: 'POST',
    route: endpoint,
    incomingTraceparent: Array.isArray(traceparent) ? undefined : traceparent,
  });
  return { exchange, endpoint, recording: new Recording(exchange, span, endpoint, recordedHeaders) };
}

/** One recorded request: read, understand, forward. Ends with an answer on every path. */
export async function handleRecorded(
  request: RecordedRequest,
  acceptBody: () => void,
  settings: ProxySettings,
  collaborators: ProxyCollaborators,
): Promise<void> {
  const { exchange, endpoint, recording } = request;
  try {
    using body = await readBody(exchange.request, {
      maxBytes: settings.maxBodyBytes,
      timeoutMs: settings.clientBodyMs,
      budget: collaborators.bodyBudget,
      onAccepted: acceptBody,
    });
    const inspected = await collaborators.inspector.inspect(body.chunks, endpoint);
    const text = collaborators.pool.choosesByPrefix ? inspected.describeText() : null;
    recording.noteBody(text === null ? inspected : { ...inspected, describeText: () => text });
    const plan = planRecorded(request, { ...inspected, text }, settings, collaborators);
    await forward(exchange, plan, settings);
  } catch (error) {
    failExchange(exchange, error, collaborators.log);
  }
}

/** A request body, and what its text says where that decides which replica it goes to. */
interface PlannedBody {
  readonly bytes: Buffer;
  readonly facts: RequestFacts;
  readonly text: RequestTextDescription | null;
}

function planRecorded(
  { exchange, endpoint, recording }: RecordedRequest,
  { bytes, facts, text }: PlannedBody,
  { maxEventBytes, queueMs }: ProxySettings,
  { pool, replicaLog }: ProxyCollaborators,
): ForwardPlan {
  const prefixKey = text && pool.prefixKeyOf(facts.model, text.prefixHashes ?? []);
  return {
    acquire(tried) {
      const lease = pool.acquire(facts.model, tried, prefixKey);
      if (lease !== 'busy') return lease;
      const wait = pool.waitFor(facts.model, { tried, prefixKey }, queueMs - recording.queuedMs);
      if (wait !== 'overloaded') recording.noteWait(wait.result);
      return wait;
    },
    toAttempt(replica, { withUsage, onFreshConnection }) {
      const isInjected = withUsage && isUsageToBeAsked(facts, endpoint, replica);
      return {
        ...toAttemptBase(exchange, replica, recording.traceparent),
        body: isInjected ? spliceIncludeUsage(bytes, facts) : [bytes],
        onFreshConnection,
        didInjectUsage: isInjected,
        relay: {
          maxEventBytes,
          undo: isInjected ? undoRulesFor(replica.engine, endpoint, facts.streamOptions) : null,
          createStreamTap: () => new StreamTap(exchange.arrivedMs, toUsageTally(replica, facts)),
        },
        onResponse: (isEventStream, responseFacts) => {
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
