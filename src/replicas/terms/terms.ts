/*
 * The words that both planes, the admin API and the CLI have for a replica: its configuration, what is known of it, the
 * snapshot of a pool, how many responses go on in the background.
 *
 * It never knows how anything is found out.
 * Begin with pool-snapshot.ts.
 */

export { addBackground, type BackgroundCount, NO_BACKGROUND } from './background-count.ts';
export type { PoolSnapshot, ReplicaKnowledge, ReplicaSnapshot } from './pool-snapshot.ts';
export type { Engine, ReplicaConfig } from './replica-config.ts';
export type { ShadowRole } from './shadow-role.ts';
