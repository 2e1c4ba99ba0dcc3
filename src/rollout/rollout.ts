/*
 * `gateway rollout`: restarts replicas one after another, compares each with its peers, and can be resumed.
 *
 * It never knows the inside of a gateway: it asks through the admin API.
 * Begin with rollout-command.ts, which says what may be resumed, then roll-replica.ts; steps/drain.ts makes way for another rollout of the same model.
 */

export { rollout } from './rollout-command.ts';
