import type { Network } from '../engine/network.ts';
import type { Schedule } from '../engine/schedule.ts';
import type { Chronicle } from './checks/chronicle.ts';
import type { RequestPlan } from './plan.ts';

/** What those who live in a world share. */
export interface WorldParts {
  readonly schedule: Schedule;
  readonly network: Network;
  readonly chronicle: Chronicle;
  /** The requests of all clients, by id. */
  readonly plans: ReadonlyMap<string, RequestPlan>;
}
