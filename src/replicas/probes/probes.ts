/*
 * The gateway's own requests to a replica: what it asks, and what the answers show.
 *
 * It never knows when a replica is asked, nor what follows: replica-prober.ts in #replicas/discovery and #replicas/health do.
 * Begin with probe.ts, then findings.ts.
 */

export { type EngineProbe, probeEngine } from './engine-probe.ts';
export { isHealthy, toHealthFinding, toListFinding } from './findings.ts';
export { parseModelList } from './model-list.ts';
export { type ProbeAnswer, type ProbeResult, type ProbeTarget, probe } from './probe.ts';
export { addressOf, shakeHands } from './tls-handshake.ts';
