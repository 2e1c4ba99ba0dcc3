import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { getBooleanFromEnv } from '@opentelemetry/core';
import { OTLPTraceExporter as JsonTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { OTLPTraceExporter as ProtobufTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import type { Resource } from '@opentelemetry/resources';
import {
  AlwaysOnSampler,
  BatchSpanProcessor,
  type IdGenerator,
  type ReadableSpan,
  TracerProvider,
} from '@opentelemetry/sdk-trace';
import { type Clock, waitAtMost } from '#otel/base';
import type { OtlpOptions } from '#otel/collector';
import { DeadlineExporter } from '#otel/export';
import { ADMIN_ACTION, SCOPE } from '#otel/record/registry';
import { type RolloutStepAction, recordRolloutStep } from './rollout-step.ts';
import { recordShadowSpan, type ShadowSpan } from './shadow-span.ts';
import { GivenIds, KnownIds, RandomIds } from './trace-ids.ts';

/** An action of the admin API or of a signal. */
export type AdminAction = ReplicaAction | ReloadAction | ConditionAction | RolloutStepAction;

type ReplicaAction = DrainAction | ShadowAction | HealthAction;

/** What is known of every action. */
interface Action {
  /** The name of the token that asked for it; null: a signal, or the gateway itself. */
  readonly tokenName: string | null;
  /** When the call arrived, or what has ended or is decided now began: epoch milliseconds. */
  readonly startEpochMs: number;
}

/** A replica was drained or undrained. */
interface DrainAction extends Action {
  readonly action: 'drain' | 'undrain';
  readonly replica: string;
  readonly wasDrained: boolean;
  /** Requests in flight on the replica when the action took effect. */
  readonly inflight: number;
  /** Null if none was given. */
  readonly reason: string | null;
  /** Of an undrain with a ramp: how long it takes. */
  readonly rampMs?: number;
}

/** A replica became a shadow for a while, or is what it was. With another share, one ends and the next begins. */
interface ShadowAction extends Action {
  readonly action: 'shadow_begins' | 'shadow_ends';
  readonly replica: string;
  /** The share of the requests of its models of which it gets copies. */
  readonly share: number;
}

/** The gateway found that a replica fails, or that it does not any more. */
interface HealthAction extends Action {
  readonly action: 'replica_failing' | 'replica_ok' | 'replica_probation' | 'replica_kept';
  readonly replica: string;
  readonly inflight: number;
  /** What has shown it. */
  readonly judge: string;
  readonly verdict: string;
  /** What was seen, in words; null if the judge says all. */
  readonly reason: string | null;
}

/** The configuration was reloaded. */
interface ReloadAction extends Action {
  readonly action: 'reload';
  /** Null if the configuration was invalid. */
  readonly done: {
    readonly changedKeys: readonly string[];
    readonly added: number;
    readonly changed: number;
    readonly removed: number;
  } | null;
}

/** Something began to be wrong, or ended. */
interface ConditionAction extends Action {
  readonly action: 'condition_begins' | 'condition_ends';
  /** As in docs/troubleshooting.md. */
  readonly id: string;
  readonly severity: string;
  readonly subject: string;
  readonly sentence: string;
}

/** The spans of admin actions. They show a rollout next to the latencies that it causes. */
export interface AdminSpans {
  /** Creates the span of an action that ends now. */
  record(action: AdminAction): void;
  /** Creates the span of a copy at a shadow, which has ended. */
  recordShadow(copy: ShadowSpan): void;
  /** Exports the remaining spans, at most until the deadline. Never rejects. */
  shutdown(deadlineMs: number): Promise<void>;
}

/** No spans: with `export.to: file`, because files hold only records, and with OTEL_SDK_DISABLED. */
const NO_ADMIN_SPANS: AdminSpans = {
  record: () => undefined,
  recordShadow: () => undefined,
  shutdown: async () => undefined,
};

/**
 * Starts the export of admin actions with the SDK's own processor and exporter, separate from the queue and counters
 * of records. `collector`: where spans are sent; undefined: nowhere. The OTEL_EXPORTER_OTLP_* variables apply.
 */
export function startAdminSpans(
  collector: OtlpOptions | undefined,
  {
    resource,
    version,
    intervalMs,
    clock,
  }: { resource: Resource; version: string | undefined; intervalMs: number; clock: Clock },
): AdminSpans {
  if (collector === undefined || getBooleanFromEnv('OTEL_SDK_DISABLED')) return NO_ADMIN_SPANS;
  const url = collector.url.href;
  const Exporter = collector.protocol === 'http/json' ? JsonTraceExporter : ProtobufTraceExporter;
  const exporter = new DeadlineExporter<ReadableSpan[]>(
    collector,
    (httpAgentOptions) => new Exporter({ url, headers: collector.headers, httpAgentOptions }),
  );
  const processor = new BatchSpanProcessor({ exporter, scheduledDelayMillis: intervalMs });
  const createTracer = (idGenerator: IdGenerator) => {
    const sampler = new AlwaysOnSampler();
    const provider = new TracerProvider({ resource, idGenerator, sampler, spanProcessors: [processor] });
    return provider.getTracer(SCOPE.name, version, SCOPE);
  };
  const tracer = createTracer(new RandomIds());
  const shadowIds = new GivenIds();
  const shadowTracer = createTracer(shadowIds);
  return {
    record(action) {
      if (action.action === 'rollout_step') {
        return recordRolloutStep(createTracer(new KnownIds(action.traceId, [action.spanId])), action);
      }
      // INTERNAL: tools that derive metrics from spans would count a SERVER span as a request.
      const options = { kind: SpanKind.INTERNAL, root: true, startTime: action.startEpochMs };
      const span = tracer.startSpan(action.action, options, ROOT_CONTEXT);
      span.setAttributes(toAttributes(action));
      if (action.action === 'reload' && action.done === null) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    },
    recordShadow(copy) {
      shadowIds.ids = copy;
      recordShadowSpan(shadowTracer, copy);
    },
    async shutdown(deadlineMs) {
      // It has no deadline of its own, and repeats a call that failed for up to its time-out.
      const flushed = processor.shutdown().catch(() => undefined);
      await waitAtMost(deadlineMs, flushed, clock);
    },
  };
}

/** What is known of an action, by the names of the registry. */
function toAttributes(action: Exclude<AdminAction, RolloutStepAction>): Attributes {
  const facts = new Map(Object.entries(toFacts(action)));
  const known = Object.entries(ADMIN_ACTION).filter(([fact]) => facts.get(fact) != null);
  return Object.fromEntries(known.map(([fact, attribute]) => [attribute, facts.get(fact)]));
}

function toFacts(action: Exclude<AdminAction, RolloutStepAction>): object {
  if ('severity' in action) {
    const { id: condition, severity, subject, sentence } = action;
    return { condition, conditionSeverity: severity, conditionSubject: subject, conditionSentence: sentence };
  }
  if (action.action !== 'reload') return action;
  const { done, tokenName } = action;
  if (done === null) return { tokenName, errorType: 'invalid_config' };
  const { changedKeys, added, changed, removed } = done;
  return { tokenName, changedKeys, replicasAdded: added, replicasChanged: changed, replicasRemoved: removed };
}
