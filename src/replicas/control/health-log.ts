import type { HealthSource } from '../shared/health-table.ts';

/** Where it is told that a replica begins to fail, or ceases to. A pino logger fits. */
export interface HealthLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Says that a replica fails from now on, and by what. */
export function logFailing(log: HealthLog, replica: string, judge: HealthSource): void {
  log.warn({ replica, judge }, 'replica failing: tried last');
}

/** Says that a replica is ok again. */
export function logOk(log: HealthLog, replica: string): void {
  log.info({ replica }, 'replica ok: tried in its turn again');
}
