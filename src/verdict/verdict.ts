/*
 * Whether a replica is as good as its peers, from the facts of their requests.
 *
 * It never knows a clock, random numbers or a record: verdicts are computed from numbers alone.
 * Begin with replica-comparison.ts, which a rollout uses once, and watch.ts, which health.peers uses all the time.
 */

export { isFull, MIN_BLOCK_MS, MIN_REQUESTS } from './block-filling.ts';
export type { Judgement } from './judge.ts';
export type { Block, Observation } from './observation.ts';
export { ReplicaComparison } from './replica-comparison.ts';
export { FALSE_ALARMS_PER_DAY, ReplicaWatch, type WatchedDimension } from './watch.ts';
