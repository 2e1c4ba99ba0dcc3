/*
 * Whether a replica is as good as its peers, from the facts of their requests.
 *
 * It never knows a clock, random numbers or a record: verdicts are computed from numbers alone. #comparisons finds who is silent.
 * Begin with group-comparison.ts, which a verdict that somebody asks for uses, and watch.ts, which health.peers uses all
 * the time. #verdict/pairs compares answers to the same requests.
 */

export { BETS, type Comparison, FINISHES } from './comparison.ts';
export { percent, toFinishText } from './describe.ts';
export { GroupComparison } from './group-comparison.ts';
export type { JudgeSettings } from './judge.ts';
export { toComparedMs } from './strata.ts';
export { FALSE_ALARMS_PER_DAY, ReplicaWatch, type WatchedDimension } from './watch.ts';
