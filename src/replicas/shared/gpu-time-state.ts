/** The GPU time of a replica at one moment, and who shares it. Times are in milliseconds. */
export interface GpuTimeState {
  /** Leases held, by all workers. */
  inflight: number;
  gpuCount: number;
  /** The clock's time of this state. */
  atMs: number;
  /** What a lease that was held all the time would have got: the integral of `gpuCount / inflight`. */
  shareMs: number;
  /** The integral of `gpuCount` while at least one lease was held. */
  busyMs: number;
  /** The part of `busyMs` that belongs to no record. */
  unrecordedMs: number;
  /** Leases held by the writer of the state, and the sum of `shareMs` at their beginnings. */
  own: number;
  ownMs: number;
}

/** The state of a replica that has never been busy. */
export function emptyState(): GpuTimeState {
  return { inflight: 0, gpuCount: 0, atMs: 0, shareMs: 0, busyMs: 0, unrecordedMs: 0, own: 0, ownMs: 0 };
}

/** Moves a state to a later time. The clocks of two threads may differ a little: time never goes back. */
export function advance(state: GpuTimeState, nowMs: number, gpuCount: number): void {
  const gpuMs = gpuCount * Math.max(0, nowMs - state.atMs);
  state.atMs = Math.max(state.atMs, nowMs);
  state.gpuCount = gpuCount;
  if (state.inflight === 0) return;
  state.busyMs += gpuMs;
  state.shareMs += gpuMs / state.inflight;
}

/** A lease of the writer begins. `shareMs` begins anew with each busy period, so that it keeps its precision. */
export function beginLease(state: GpuTimeState): void {
  if (state.inflight === 0) state.shareMs = 0;
  state.inflight++;
  state.own++;
  state.ownMs += state.shareMs;
}

/** A lease of the writer ends that began at this `shareMs`; its time is in a record. */
export function endRecorded(state: GpuTimeState, beganAt: number): void {
  state.inflight--;
  state.own--;
  state.ownMs = state.own === 0 ? 0 : state.ownMs - beganAt;
}

/** The same for a lease whose time is in no record. */
export function endUnrecorded(state: GpuTimeState, beganAt: number): void {
  endRecorded(state, beganAt);
  addUnrecorded(state, state.shareMs - beganAt);
}

/** Notes GPU time that is in no record. */
export function addUnrecorded(state: GpuTimeState, ms: number): void {
  state.unrecordedMs += Math.max(0, ms);
}

/** All leases of a writer that died end, without a record. */
export function endAll(
  state: GpuTimeState,
  { own, ownMs }: Pick<Readonly<GpuTimeState>, 'own' | 'ownMs'>,
): void {
  addUnrecorded(state, own * state.shareMs - ownMs);
  state.inflight -= own;
}

/** Nothing is left but the time. */
export function forgetAll(state: GpuTimeState): void {
  Object.assign(state, emptyState(), { atMs: state.atMs });
}

/** Only the time of a state changes. */
export function changeNothing(): void {}
