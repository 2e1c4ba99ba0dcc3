/*
 * A simulated replica, for the quick start and for tests.
 *
 * It never knows the gateway in front of it.
 * Begin with create-replica.ts; dialects/ has what the engines do differently.
 */

export { createSimulatedReplica } from './create-replica.ts';
export { DEFAULT_SETTINGS, SIMULATED_ENGINES, type SimulatedReplicaSettings } from './settings.ts';
