import type { Lease, NoLease } from '../../replicas/data/lease.ts';
import type { Wait, WaitResult } from '../../replicas/data/wait-queue.ts';
import type { Exchange } from '../exchange.ts';

/** What comes of asking for a replica: a lease, why there is none, or a wait for one. */
export type Acquired = Lease | NoLease | 'overloaded' | Wait;

/** Whether the request has to wait. */
export function isWait(acquired: Acquired): acquired is Wait {
  return typeof acquired === 'object' && 'abandon' in acquired;
}

/** Waits for a lease, for as long as the client does. */
export async function awaitLease(wait: Wait, exchange: Exchange): Promise<WaitResult> {
  exchange.attempt = wait;
  const result = await wait.result;
  exchange.attempt = null;
  return result;
}
