/*
 * What is known of a rollout, as who drives it tells the gateways, as they tell each other, and as it is on disk: one form
 * for all three. Also the mark by which drains belong to it.
 *
 * It never knows who keeps the facts, nor who tells them.
 * Begin with rollout-facts.ts.
 */

export {
  type Phase,
  type ReplicaFacts,
  type RolloutFacts,
  rolloutFacts,
  STAGES,
  type StopKind,
  VERDICT_MODES,
} from './rollout-facts.ts';

/** The most characters of a reason that the admin API takes. */
const MAX_REASON_CHARS = 256;

const MARK = /\brollout-([0-9a-f]{8})\b/;

/** What tells a rollout from others: the beginning of its trace id. */
export const toMark = (traceId: string): string => traceId.slice(0, 8);

/**
 * The reason of a drain, with the mark of its rollout: drains are shared by a fleet and survive restarts, so
 * every other rollout can see whose they are. `sentence`: what is wrong with the replica.
 */
export function toReason(given: string | null, mark: string, sentence?: string): string {
  const why = given === null ? `rollout-${mark}` : `rollout-${mark}, ${given}`;
  return (sentence === undefined ? why : `${why}: ${sentence}`).slice(0, MAX_REASON_CHARS);
}

/**
 * The reason of an undrain: what a person has given, and nothing of the rollout. It stays with the replica when the rollout
 * is over.
 */
export const toReasonOfUndrain = (given: string | null): string => (given ?? '').slice(0, MAX_REASON_CHARS);

/** The reason of a drain that a rollout leaves behind: without its mark, so that it holds up no other one. */
export function toReasonOfLeft(reason: string | null): string {
  const why = (reason ?? '').replace(/^rollout-[0-9a-f]{8}(?:: |, )?/, '');
  return `left drained by a rollout${why === '' ? '' : `: ${why}`}`.slice(0, MAX_REASON_CHARS);
}

/** The mark in the reason of a drain; null if no rollout has drained it. */
export function readMark(reason: unknown): string | null {
  return typeof reason === 'string' ? (MARK.exec(reason)?.[1] ?? null) : null;
}
