import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  TraceFlags,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import { ROLLOUT_STEP } from '#otel/record/registry';

/** The names of the spans of a rollout: of the whole, of one replica, and of its steps. */
const STEPS = [
  'rollout',
  'replica',
  'rollout_drain',
  'restart',
  'answer',
  'rollout_undrain',
  'ramp',
  'compare',
] as const;

/** How a step ended. */
const OUTCOMES = ['ok', 'good', 'bad', 'undecided', 'failed', 'interrupted'] as const;

/** The figures of a comparison, by the name that the admin API has for them. */
const FIGURES = {
  requests: { attribute: ROLLOUT_STEP.requests, meaning: 'Requests of the replica that were compared.' },
  peer_requests: { attribute: ROLLOUT_STEP.peerRequests, meaning: 'Requests of its peers.' },
  first_token_ratio: {
    attribute: ROLLOUT_STEP.firstTokenRatio,
    meaning: "The time to the first token, in units of its peers'.",
  },
  gaps_ratio: { attribute: ROLLOUT_STEP.gapsRatio, meaning: "The gaps, in units of its peers'." },
  duration_ratio: {
    attribute: ROLLOUT_STEP.durationRatio,
    meaning: "The duration of responses in one piece, in units of its peers'.",
  },
  lengths_ratio: {
    attribute: ROLLOUT_STEP.lengthsRatio,
    meaning: "The tokens of completions, in units of its peers'.",
  },
  cached_difference: {
    attribute: ROLLOUT_STEP.cachedDifference,
    meaning: 'By how much its share of cached tokens is above that of its peers.',
  },
  error_share: { attribute: ROLLOUT_STEP.errorShare, meaning: 'The share of its requests that failed.' },
  peer_error_share: {
    attribute: ROLLOUT_STEP.peerErrorShare,
    meaning: "The share of its peers' requests that failed.",
  },
} as const;

/** What the span of a step of a rollout can say, for who takes it in. */
export const ROLLOUT = { steps: STEPS, outcomes: OUTCOMES, figures: FIGURES };

/** One step of a rollout, which ends now. The caller has made its ids. */
export interface RolloutStepAction {
  readonly action: 'rollout_step';
  readonly traceId: string;
  readonly spanId: string;
  /** Null: it is the root. */
  readonly parentSpanId: string | null;
  readonly step: (typeof STEPS)[number];
  readonly startEpochMs: number;
  readonly outcome: (typeof OUTCOMES)[number];
  readonly replica: string | null;
  /** One line for people. */
  readonly sentence: string | null;
  readonly figures: Readonly<Partial<Record<keyof typeof FIGURES, number>>>;
  /** The name of the token that asked for it. */
  readonly tokenName: string | null;
}

/** Records the span of a step. `tracer`: gives it its ids. */
export function recordRolloutStep(tracer: Tracer, action: RolloutStepAction): void {
  const options = { kind: SpanKind.INTERNAL, startTime: action.startEpochMs };
  const span = tracer.startSpan(action.step, options, toParentContext(action));
  span.setAttributes(toAttributes(action));
  if (action.outcome !== 'ok' && action.outcome !== 'good') span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

function toParentContext({ traceId, parentSpanId }: RolloutStepAction): Context {
  if (parentSpanId === null) return ROOT_CONTEXT;
  const parent = { traceId, spanId: parentSpanId, traceFlags: TraceFlags.SAMPLED, isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, parent);
}

function toAttributes({ replica, outcome, sentence, tokenName, figures }: RolloutStepAction): Attributes {
  const attributes: Attributes = {
    [ROLLOUT_STEP.outcome]: outcome,
    ...(replica === null ? {} : { [ROLLOUT_STEP.replica]: replica }),
    ...(sentence === null ? {} : { [ROLLOUT_STEP.sentence]: sentence }),
    ...(tokenName === null ? {} : { [ROLLOUT_STEP.tokenName]: tokenName }),
  };
  for (const [name, { attribute }] of Object.entries(FIGURES)) {
    const value = figures[name as keyof typeof FIGURES];
    if (value !== undefined) attributes[attribute] = value;
  }
  return attributes;
}
