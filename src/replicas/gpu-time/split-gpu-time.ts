/** What the GPUs of a replica offer while they pass the time: their time in milliseconds, or what it costs. */
export interface GpuAccount {
  /** What a lease that was held all the time would have got: the integral over the number of leases. */
  share: number;
  /** The integral while at least one lease was held. */
  busy: number;
  /** The integral while none was held. */
  idle: number;
  /** The part of `busy` that belongs to no record. */
  unrecorded: number;
  /** The sum of `share` at the beginnings of the leases that the writer of the state holds. */
  own: number;
}

/** The GPU time of a replica at one moment, its cost, and who shares it. */
export interface GpuTimeState {
  /** Leases held, by all workers. */
  inflight: number;
  gpuCount: number;
  /** Leases held by the writer of the state. */
  own: number;
  /** What an hour of one GPU costs; NaN: it is not known, and the cost stays as it is. */
  hourPrice: number;
  /** The clock's time of this state, in milliseconds. */
  atMs: number;
  /** In milliseconds of one GPU. */
  readonly time: GpuAccount;
  /** In units of the currency. */
  readonly cost: GpuAccount;
}

const MS_PER_HOUR = 3_600_000;

/** The state of a replica that has no GPUs yet. */
export function emptyState(): GpuTimeState {
  return {
    inflight: 0,
    gpuCount: 0,
    own: 0,
    hourPrice: Number.NaN,
    atMs: 0,
    time: emptyAccount(),
    cost: emptyAccount(),
  };
}

function emptyAccount(): GpuAccount {
  return { share: 0, busy: 0, idle: 0, unrecorded: 0, own: 0 };
}

/** Moves a state to a later time. The clocks of two threads may differ a little: time never goes back. */
export function advance(state: GpuTimeState, nowMs: number): void {
  const gpuMs = state.gpuCount * Math.max(0, nowMs - state.atMs);
  state.atMs = Math.max(state.atMs, nowMs);
  add(state.time, gpuMs, state.inflight);
  // NaN, which is equal to nothing, is no price.
  if (state.hourPrice >= 0) add(state.cost, (gpuMs * state.hourPrice) / MS_PER_HOUR, state.inflight);
}

function add(account: GpuAccount, amount: number, inflight: number): void {
  if (inflight === 0) {
    account.idle += amount;
    return;
  }
  account.busy += amount;
  account.share += amount / inflight;
}

/** A lease of the writer begins. The shares begin anew with each busy period, so that they keep their precision. */
export function beginLease(state: GpuTimeState): void {
  const { time, cost } = state;
  if (state.inflight === 0) {
    time.share = 0;
    cost.share = 0;
  }
  state.inflight++;
  state.own++;
  time.own += time.share;
  cost.own += cost.share;
}

/** Where a lease began: the shares at that moment. */
export interface LeaseBegin {
  readonly time: number;
  readonly cost: number;
}

/** A lease of the writer ends; its part is in a record. */
export function endRecorded(state: GpuTimeState, began: LeaseBegin): void {
  const { time, cost } = state;
  state.inflight--;
  state.own--;
  time.own = state.own === 0 ? 0 : time.own - began.time;
  cost.own = state.own === 0 ? 0 : cost.own - began.cost;
}

/** The same for a lease whose part is in no record. */
export function endUnrecorded(state: GpuTimeState, began: LeaseBegin): void {
  endRecorded(state, began);
  addUnrecorded(state, { time: state.time.share - began.time, cost: state.cost.share - began.cost });
}

/** Notes a part that is in no record. */
export function addUnrecorded({ time, cost }: GpuTimeState, part: LeaseBegin): void {
  time.unrecorded += Math.max(0, part.time);
  cost.unrecorded += Math.max(0, part.cost);
}

/** All leases of a writer that died end, without a record. */
export function endAll(state: GpuTimeState, died: Pick<GpuTimeState, 'own' | 'time' | 'cost'>): void {
  const { own, time, cost } = died;
  addUnrecorded(state, {
    time: own * state.time.share - time.own,
    cost: own * state.cost.share - cost.own,
  });
  state.inflight -= own;
}

/** Nothing is left but the time of the clock. */
export function forgetAll(state: GpuTimeState): void {
  Object.assign(state, emptyState(), { atMs: state.atMs });
}

/** Only the time of a state changes. */
export function changeNothing(): void {}
