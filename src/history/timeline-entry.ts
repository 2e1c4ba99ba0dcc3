import type { AdminAction } from '#otel/span';

/** What the timeline has: some of it lasts, and then is a band. */
export const EVENT_KINDS = [
  'start',
  'stop',
  'killed',
  'set_aside',
  'condition',
  'drain',
  'shadow',
  'health',
  'rollout',
  'reload',
] as const;

export type EventKind = (typeof EVENT_KINDS)[number];

/**
 * One entry. `begin` opens a band of its kind and subject, `end` closes it, `moment` is over at once, `span` has both
 * ends.
 */
export interface TimelineEntry {
  readonly phase: 'begin' | 'end' | 'moment' | 'span';
  readonly kind: EventKind;
  /** Whose: a replica, the subject of a condition with its id, or empty. */
  readonly subject: string;
  /** When it began, and when it ended or happened: epoch milliseconds. */
  readonly fromMs: number;
  readonly atMs: number;
  readonly details: Readonly<Record<string, string | number | boolean | null>>;
}

/** An event as it is kept. */
export interface ShownEvent {
  readonly number: number;
  readonly kind: EventKind;
  readonly subject: string;
  readonly fromMs: number;
  /** Null: it goes on. */
  readonly untilMs: number | null;
  readonly details: Readonly<Record<string, string | number | boolean | null>>;
}

/** A condition that is on; a shadow; or a replica, which is drained, or was until then. Since when: epoch milliseconds. */
export type PresentFact =
  | Extract<AdminAction, { share: number }>
  | (ConditionFacts & { readonly sinceMs: number })
  | {
      readonly replica: string;
      readonly isDrained: boolean;
      readonly reason: string | null;
      readonly sinceMs: number;
    };

type ConditionFacts = Pick<
  Extract<AdminAction, { action: 'condition_begins' | 'condition_ends' }>,
  'id' | 'severity' | 'subject' | 'sentence'
>;

/** What is so now, as the entry that the timeline has of it if nothing was missed. */
export function toPresentEntry(fact: PresentFact): TimelineEntry {
  if ('action' in fact) return toTimelineEntry(fact, fact.startEpochMs);
  const times = { fromMs: fact.sinceMs, atMs: fact.sinceMs };
  if ('id' in fact) return { ...times, phase: 'begin', ...toCondition(fact) };
  const { replica, isDrained, reason } = fact;
  const details = { reason: reason === null ? null : cut(reason) };
  return { ...times, phase: isDrained ? 'begin' : 'end', kind: 'drain', subject: cut(replica), details };
}

function toCondition({ id, severity, subject, sentence }: ConditionFacts) {
  const details = { id, severity, sentence: cut(sentence), subject: cut(subject) };
  return { kind: 'condition', subject: cut(`${id} ${subject}`), details } as const;
}

/** Texts of operators and of conditions are cut at this length. */
const MAX_TEXT = 500;

/** What an action of an operator, or of the gateway itself, is on the timeline. */
export function toTimelineEntry(action: AdminAction, nowMs: number): TimelineEntry {
  const by = action.tokenName;
  const base = { fromMs: action.startEpochMs, atMs: nowMs };
  switch (action.action) {
    case 'condition_begins':
      return { ...base, phase: 'begin', ...toCondition(action) };
    case 'condition_ends':
      return { ...base, phase: 'end', ...toCondition(action) };
    case 'drain':
    case 'undrain': {
      const { replica, reason, wasDrained, inflight } = action;
      const details = { by, reason: reason === null ? null : cut(reason), inflight, was_drained: wasDrained };
      const phase = action.action === 'drain' ? 'begin' : 'end';
      // Not from the beginning of the call: an undrain that ends no drain is no band.
      return { ...base, fromMs: nowMs, phase, kind: 'drain', subject: cut(replica), details };
    }
    case 'shadow_begins':
    case 'shadow_ends': {
      const phase = action.action === 'shadow_begins' ? 'begin' : 'end';
      return {
        ...base,
        phase,
        kind: 'shadow',
        subject: cut(action.replica),
        details: { by, share: action.share },
      };
    }
    case 'reload': {
      const { done } = action;
      const details =
        done === null
          ? { by, refused: true }
          : {
              by,
              refused: false,
              changed_keys: cut(done.changedKeys.join(', ')),
              added: done.added,
              changed: done.changed,
              removed: done.removed,
            };
      return { ...base, phase: 'moment', kind: 'reload', subject: '', details };
    }
    case 'rollout_step': {
      const { step, outcome, replica, sentence, traceId } = action;
      const details = {
        by,
        step,
        outcome,
        sentence: sentence === null ? null : cut(sentence),
        trace_id: traceId,
      };
      return { ...base, phase: 'span', kind: 'rollout', subject: cut(replica ?? ''), details };
    }
    default: {
      const { replica, judge, verdict, reason, inflight } = action;
      const details = {
        change: action.action,
        judge,
        verdict,
        reason: reason === null ? null : cut(reason),
        inflight,
      };
      return { ...base, phase: 'moment', kind: 'health', subject: cut(replica), details };
    }
  }
}

function cut(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT - 1)}…` : text;
}
