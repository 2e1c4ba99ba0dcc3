import type { GpuShare } from './gpu-share.ts';

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
