/*
 * Whether a replica fails, and by which judges: one bit for each, in shared memory.
 *
 * It never knows how a judge comes to its decision.
 * Begin with health-decision.ts, which has the judges.
 */

export {
  HEALTH_JUDGES,
  HEALTH_TEXTS,
  type HealthDecision,
  type HealthJudge,
  type HealthVerdict,
} from './health-decision.ts';
export { HEALTH_COLUMNS, type Health, type HealthSettings, HealthTable } from './health-table.ts';
