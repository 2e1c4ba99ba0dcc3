/*
 * What is known of a rollout, as who drives it tells the gateways, as they tell each other, and as it is on disk: one form
 * for all three. Also the mark by which drains belong to it.
 *
 * It never knows who keeps the facts, nor who tells them.
 * Begin with rollout-facts.ts.
 */

export {
  readMark,
  toMark,
  toReason,
  toReasonOfLeft,
  toReasonOfUndrain,
} from './mark.ts';
export {
  type Phase,
  type ReplicaFacts,
  type RolloutFacts,
  rolloutFacts,
  STAGES,
  type StopKind,
  VERDICT_MODES,
} from './rollout-facts.ts';
