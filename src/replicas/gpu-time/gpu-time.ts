/*
 * GPU time: the time of a replica by its number of GPUs, divided between the requests in flight on it, in shared memory.
 *
 * It never knows what a request is: it counts leases.
 * Begin with gpu-time-state.ts; gpu-share.ts is the part of one lease.
 */

export { addGpuTime } from './add-gpu-time.ts';
export { GpuShare } from './gpu-share.ts';
export { type GpuTime, GpuTimeTable, toGpuTimeShapes } from './gpu-time-table.ts';
