/*
 * The judges of health: refused connections, probes, silence, and the comparison with peers.
 *
 * It never knows how requests are sent; the bits that it sets are in #replicas/health-state.
 * Begin with health-decisions.ts, where every decision is logged and counted; each judge has a file. usual-silences.ts
 * is what `frozen_after: auto` learns, of replicas; stream-silence-learner.ts when a stream is silent.
 */

export { AUTO_BOUND, FrozenWatch, type SilenceBound } from './frozen-watch.ts';
export { HealthChecker, toHealthPath } from './health-checker.ts';
export { type HealthAction, type HealthDecisionCount, HealthDecisions } from './health-decisions.ts';
export { PeerWatch } from './peer-watch.ts';
export { type EndedStream, StreamSilenceLearner } from './stream-silence-learner.ts';
