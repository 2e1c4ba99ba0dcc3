/*
 * A simulated replica, for the quick start and for tests.
 *
 * It never knows the gateway in front of it.
 * Begin with create-replica.ts; dialects/ has what the engines do differently, scenes.ts what a running one can play.
 */

export { createSimulatedReplica, type SimulatedReplica } from './create-replica.ts';
export { isScene, SCENE_TEXTS, SCENES, type Scene } from './scenes.ts';
export { DEFAULT_SETTINGS, SIMULATED_ENGINES, type SimulatedReplicaSettings } from './settings.ts';
