/** What tells of the replicas behind a name. */
export const SOURCE_KINDS = ['kubernetes', 'dns'] as const;

/** Whether a source answers: `unknown` before its first answer or failure. */
export const SOURCE_STATES = ['ok', 'failing', 'unknown'] as const;

/** Whether a source answers, since when, and why not. */
export interface SourceStatus {
  readonly state: (typeof SOURCE_STATES)[number];
  /** When `state` began, in RFC 3339; null while it is unknown. */
  readonly since: string | null;
  /** The code of the last failure: a short word. Null unless it fails. */
  readonly errorCode: string | null;
  /** The system's code for its cause, such as ERR_TLS_CERT_ALTNAME_INVALID; null: there is none. */
  readonly errorCause: string | null;
  /** What is to be done, such as the rule that a Role lacks; null: the failure does not say. */
  readonly advice: string | null;
}

/** A pod that has not answered yet. */
export interface WaitingPod {
  readonly pod: string;
  /** When the gateway first saw it, in RFC 3339. */
  readonly since: string;
  /** Why it was not confirmed the last time, as a phrase; null before it was asked. */
  readonly problem: string | null;
}

/** The readiness gate of a source, and whether conditions can be written: `unknown` before the first one. */
export interface ReadinessGateState extends SourceStatus {
  /** The type of the condition. */
  readonly condition: string;
  /** Pods that got it since the gateway started or was told of it. */
  readonly confirmedCount: number;
  readonly waitingCount: number;
  /** Those that wait for the longest time, first. */
  readonly waiting: readonly WaitingPod[];
}

/** The source of one entry of the configuration. While it fails, the replicas stay as they were. */
export interface SourceState extends SourceStatus {
  /** The name of the entry. */
  readonly name: string;
  readonly kind: (typeof SOURCE_KINDS)[number];
  /** Null: it has none. */
  readonly readinessGate: ReadinessGateState | null;
}

/** Before the first answer. */
export const UNKNOWN_STATUS: SourceStatus = {
  state: 'unknown',
  since: null,
  errorCode: null,
  errorCause: null,
  advice: null,
};

/** The status after an answer. */
export function toOk(before: SourceStatus): SourceStatus {
  if (before.state === 'ok') return before;
  return { ...UNKNOWN_STATUS, state: 'ok', since: new Date().toISOString() };
}

/** The status after a failure. The code and the cause may change while it goes on. */
export function toFailing(
  before: SourceStatus,
  errorCode: string,
  { cause = null, advice = null }: { readonly cause?: string | null; readonly advice?: string | null } = {},
): SourceStatus {
  const since = before.state === 'failing' ? before.since : new Date().toISOString();
  return { state: 'failing', since, errorCode, errorCause: cause, advice };
}
