import type { Network } from '../engine/network.ts';
import type { Schedule } from '../engine/schedule.ts';
import type { Ledger } from './checks/ledger.ts';
import type { RequestPlan } from './plan.ts';

/** What those who live in a world share. */
export interface WorldParts {
  readonly schedule: Schedule;
  readonly network: Network;
  readonly ledger: Ledger;
  /** The requests of all clients, by id. */
  readonly plans: ReadonlyMap<string, RequestPlan>;
}
