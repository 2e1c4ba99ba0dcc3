import { HISTORY_SLICES, SLICE_MS, toSliceIndex } from './slices.ts';

/** The GPU time of a request that ends now. */
export interface UsedGpuTime {
  /** Undefined: no replica has answered. */
  readonly replica: string | undefined;
  readonly seconds: number;
  /** From the arrival of the request to its end. */
  readonly durationMs: number;
}

/** What is placed on a replica, by slice. */
interface Placed {
  readonly gpuCount: number;
  newest: number;
  readonly slices: Float64Array;
  readonly seconds: Float64Array;
}

/** Less than this is an error of rounding. */
const LEAST_SECONDS = 1e-9;

/**
 * Spreads the GPU time of requests over the slices in which it was used. A record has only its sum, so it is taken as
 * equal over the time of the request. No slice of a replica gets more than its GPUs have in that time: what is too much
 * moves to another slice of the request that has room.
 */
export class GpuTimeSlices {
  readonly #replicas = new Map<string, Placed>();

  /** Takes the numbers of GPUs of the replicas, and forgets replicas without requests in the last five minutes. */
  configure(gpuCounts: ReadonlyMap<string, number>, nowMs: number): void {
    const oldest = toSliceIndex(nowMs) - HISTORY_SLICES;
    for (const [name, { newest }] of this.#replicas) {
      if (newest < oldest && !gpuCounts.has(name)) this.#replicas.delete(name);
    }
    for (const [name, gpuCount] of gpuCounts) {
      const placed = this.#replicas.get(name) ?? createPlaced(toSliceIndex(nowMs));
      if (placed.gpuCount !== gpuCount) this.#replicas.set(name, { ...placed, gpuCount });
    }
  }

  /** Calls `place` for each slice of the last five minutes that has a part of it. */
  spread({ replica, seconds, durationMs }: UsedGpuTime, nowMs: number, place: PlaceGpuTime): void {
    const placed = replica === undefined ? undefined : this.#replicas.get(replica);
    const end = toSliceIndex(nowMs);
    const startMs = nowMs - durationMs;
    const start = toSliceIndex(startMs);
    const oldest = Math.max(0, end - HISTORY_SLICES + 1);
    const put = (slice: number, wanted: number): number => {
      const given = Math.min(wanted, placed === undefined ? wanted : roomOf(placed, slice, nowMs));
      if (given <= 0) return wanted;
      if (placed !== undefined) add(placed, slice, given);
      place(slice, given);
      return wanted - given;
    };
    if (start === end) {
      const rest = put(end, seconds);
      if (rest > LEAST_SECONDS && end > oldest) put(end - 1, rest);
      return;
    }
    let rest = 0;
    for (let slice = Math.max(start, oldest); slice <= end; slice++) {
      const fromMs = Math.max(startMs, slice * SLICE_MS);
      const untilMs = Math.min(nowMs, (slice + 1) * SLICE_MS);
      rest += put(slice, (seconds * (untilMs - fromMs)) / durationMs);
    }
    // The record comes a little after the end of its request: it may have begun a slice earlier.
    const first = Math.max(start - 1, oldest);
    for (let slice = end; slice >= first && rest > LEAST_SECONDS; slice--) rest = put(slice, rest);
  }
}

/** Counts GPU time that was used in a slice. */
export type PlaceGpuTime = (slice: number, seconds: number) => void;

function createPlaced(newest: number): Placed {
  return {
    gpuCount: 0,
    newest,
    slices: new Float64Array(HISTORY_SLICES).fill(-1),
    seconds: new Float64Array(HISTORY_SLICES),
  };
}

function roomOf({ gpuCount, slices, seconds }: Placed, slice: number, nowMs: number): number {
  const at = slice % HISTORY_SLICES;
  const used = slices[at] === slice ? (seconds[at] ?? 0) : 0;
  const passedMs = Math.min(SLICE_MS, nowMs - slice * SLICE_MS);
  return (gpuCount * passedMs) / 1_000 - used;
}

function add(placed: Placed, slice: number, given: number): void {
  const at = slice % HISTORY_SLICES;
  placed.newest = Math.max(placed.newest, slice);
  placed.seconds[at] = given + (placed.slices[at] === slice ? (placed.seconds[at] ?? 0) : 0);
  placed.slices[at] = slice;
}
