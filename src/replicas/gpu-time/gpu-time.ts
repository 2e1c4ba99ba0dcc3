/*
 * GPU time: the time of a replica by its number of GPUs, divided between the requests in flight on it, in shared memory.
 *
 * It never knows what a request is: it counts leases.
 * Begin with split-gpu-time.ts; gpu-share.ts is the part of one lease.
 */

import type { GpuShare } from './gpu-share.ts';

export { GpuShare } from './gpu-share.ts';
export { type GpuTime, GpuTimeTable, toGpuTimeShapes } from './gpu-time-table.ts';

/** What a record says of GPU time. */
interface GpuTimeFields {
  gpu_seconds?: number;
  cost?: number;
  currency?: string;
}

/** Adds the GPU time of ended shares to a record, and its cost where a replica has a price. */
export function addGpuTime(
  record: GpuTimeFields,
  shares: readonly Pick<GpuShare, 'seconds' | 'cost'>[],
  currency: string,
): void {
  for (const { seconds, cost } of shares) {
    record.gpu_seconds = (record.gpu_seconds ?? 0) + seconds;
    // A response in the background may have begun before a restart with another currency.
    if (cost === null || (record.currency ?? currency) !== currency) continue;
    record.cost = (record.cost ?? 0) + cost;
    record.currency = currency;
  }
}
