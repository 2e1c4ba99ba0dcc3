import type { Log } from '#otel/base';
import {
  type ChangeDetails,
  type DrainChange,
  type DrainState,
  NEVER_DRAINED,
  newLogicalTimestamp,
  nextDrainState,
} from '#replicas/drain-state';
import type { Ramp, RampProgress } from '#replicas/ramps';
import type { SharedState } from '#replicas/shared';

/** The drain states in `state_dir/drains.json`, which survive a restart. */
export interface DrainFile {
  /** The states by name; only the legible ones if the file is damaged. Rejects with the system's error. */
  read(): Promise<ReadonlyMap<string, DrainState>>;
  /** Stores these states. Resolves once they, or later ones, are on disk. */
  write(states: ReadonlyMap<string, DrainState>): Promise<void>;
  /** Makes a last attempt to store what could not be stored. Never rejects. */
  close(): Promise<void>;
}

export interface DrainCollaborators {
  readonly shared: SharedState;
  readonly file: DrainFile;
  /** Resolves when each worker has answered a message or failed to in time: the numbers, from 1, of the latter. */
  readonly barrier: () => Promise<readonly number[]>;
  readonly log: Log<'debug'>;
}

/** How long after a worker did not answer the barrier is tried again. */
const CONFIRM_AGAIN_MS = 1_000;

/**
 * The drain states by name. A name keeps its state while it is not configured, so that a replica that comes back is as
 * it was, until `forget` forgets it. Only this class sets the flags that workers read.
 */
export class Drains {
  readonly #collaborators: DrainCollaborators;
  readonly #states = new Map<string, DrainState>();
  /** The slots of a name: several while a removed replica of that name finishes its requests. */
  readonly #slots = new Map<string, Set<number>>();
  /** The ramps by name; some may be at their end. */
  readonly #ramps = new Map<string, Ramp>();
  /** When each state last changed: monotonic. The time of day may be set after it. */
  readonly #changedMs = new Map<string, number>();
  /** The version of each name's state that every worker is known to respect. */
  readonly #confirmed = new Map<string, string>();

  constructor(collaborators: DrainCollaborators) {
    this.#collaborators = collaborators;
  }

  /**
   * Restores the states that an earlier run stored. A ramp goes on as if there had been no restart. Rejects with the
   * system's error.
   */
  async restore(nowEpochMs = Date.now()): Promise<void> {
    for (const [name, state] of await this.#collaborators.file.read()) {
      const { rampMs = 0, since } = state;
      const elapsedMs = nowEpochMs - Date.parse(since ?? '');
      this.#put(name, state, elapsedMs);
      if (elapsedMs < rampMs) this.setRamp(name, { elapsedMs: Math.max(0, elapsedMs), durationMs: rampMs });
      // No worker runs yet, so none can have chosen a replica before.
      this.#confirmed.set(name, state.version);
    }
  }

  stateOf(name: string): DrainState {
    return this.#states.get(name) ?? NEVER_DRAINED;
  }

  /** When a drain or an undrain of a name last took effect here: monotonic; -Infinity: never, as is known. */
  changedMsOf(name: string): number {
    return this.#changedMs.get(name) ?? Number.NEGATIVE_INFINITY;
  }

  /** Whether a name was ever drained or undrained. */
  isRemembered(name: string): boolean {
    return this.#states.has(name);
  }

  /** The state of every name that was ever drained or undrained. */
  get all(): ReadonlyMap<string, DrainState> {
    return this.#states;
  }

  /** Makes the flag of this slot follow the state of this name. */
  bind(name: string, slot: number): void {
    this.#slots.set(name, (this.#slots.get(name) ?? new Set()).add(slot));
    const { goneSince, ...state } = this.stateOf(name);
    if (goneSince !== undefined) {
      this.#states.set(name, state);
      void this.#store();
    }
    this.#enforce(name);
  }

  /** Ends what `bind` began. The name's state is kept. */
  unbind(name: string, slot: number): void {
    const slots = this.#slots.get(name);
    slots?.delete(slot);
    if (slots?.size === 0) this.#slots.delete(name);
  }

  /** Whether a replica has this name now. */
  isPresent(name: string): boolean {
    return this.#slots.has(name);
  }

  /** The names that no replica has: since when, in RFC 3339, as far as that was noted. */
  get gone(): ReadonlyMap<string, string> {
    const times = [...this.#states].flatMap(([name, { goneSince }]) =>
      goneSince === undefined ? [] : [[name, goneSince] as const],
    );
    return new Map(times);
  }

  /**
   * Notes which names no replica has any more, so call it now and then. `sinceOf`: since when, if that is known better; in
   * RFC 3339.
   */
  noteGone(nowEpochMs: number, sinceOf: (name: string) => string | undefined = () => undefined): void {
    let hasNoted = false;
    for (const [name, state] of this.#states) {
      if (this.#slots.has(name) || state.goneSince !== undefined) continue;
      this.#states.set(name, { ...state, goneSince: sinceOf(name) ?? new Date(nowEpochMs).toISOString() });
      hasNoted = true;
    }
    if (hasNoted) void this.#store();
  }

  /** Forgets those of these names that no replica has. */
  forget(names: readonly string[]): void {
    const gone = names.filter((name) => !this.#slots.has(name));
    for (const name of gone)
      for (const known of [this.#states, this.#ramps, this.#changedMs, this.#confirmed]) known.delete(name);
    if (gone.length > 0) void this.#store();
  }

  /** Drains or undrains. The flags are set when this returns. */
  set(name: string, drained: boolean, details: ChangeDetails): DrainChange {
    return this.adopt(name, nextDrainState(this.stateOf(name), drained, details));
  }

  /** The logical timestamp of a call that comes now. */
  newVersion(name: string): string {
    return newLogicalTimestamp(this.stateOf(name).version);
  }

  /** Takes over a state that was decided here or on another gateway. The flags are set when this returns. */
  adopt(name: string, after: DrainState): DrainChange {
    const before = this.stateOf(name);
    if (after !== before) {
      this.#changeRamp(name, before, after);
      this.#put(name, after);
    }
    return { before, after, stored: this.#store() };
  }

  /** Ends the access to the file. */
  close(): Promise<void> {
    return this.#collaborators.file.close();
  }

  /** How far the ramp of a name is; null: it is on none. */
  rampOf(name: string): Omit<RampProgress, 'share'> | null {
    const ramp = this.#ramps.get(name);
    if (ramp === undefined) return null;
    const elapsedMs = this.#nowMs() - ramp.beganMs;
    return elapsedMs < ramp.durationMs ? { elapsedMs, durationMs: ramp.durationMs } : null;
  }

  /** Makes the ramp of a name as long, and as far, as this; null ends it. */
  setRamp(name: string, progress: Omit<RampProgress, 'share'> | null): void {
    if (progress === null) this.#ramps.delete(name);
    else {
      const { elapsedMs, durationMs } = progress;
      this.#ramps.set(name, { beganMs: this.#nowMs() - elapsedMs, durationMs });
    }
    this.#enforce(name);
  }

  /**
   * Resolves when no worker can still be writing a request whose replica it chose before the last change: each has
   * answered a message since, and so has finished the tick in which it might have. Returns the workers that did not
   * answer. They are asked again until they do, or until the state changes.
   */
  async confirm(name: string): Promise<readonly number[]> {
    const { version } = this.stateOf(name);
    const silent = await this.#collaborators.barrier();
    if (version !== this.stateOf(name).version) return silent;
    if (silent.length === 0) this.#confirmed.set(name, version);
    else setTimeout(() => void this.confirm(name), CONFIRM_AGAIN_MS).unref();
    return silent;
  }

  /** Whether every worker is known to respect the present state of this name. */
  isConfirmed(name: string): boolean {
    const { version } = this.stateOf(name);
    return version === '' || this.#confirmed.get(name) === version;
  }

  #store(): Promise<void> {
    const stored = this.#collaborators.file.write(this.#states);
    // The caller may handle a rejection later, or never: that must not end the process.
    stored.catch(() => undefined);
    return stored;
  }

  /** `agoMs`: when it changed, unless that is now; the clock of an earlier run may have been ahead. */
  #put(name: string, state: DrainState, agoMs = 0): void {
    // Not by its `since`: the clock of the gateway that has changed it may be another one.
    if (state.since !== null && state.since !== this.stateOf(name).since)
      this.#changedMs.set(name, performance.now() - Math.max(0, agoMs));
    this.#states.set(name, state);
    this.#enforce(name);
  }

  #enforce(name: string): void {
    const { shared, log } = this.#collaborators;
    const { drained } = this.stateOf(name);
    const ramp = this.#ramps.get(name);
    for (const slot of this.#slots.get(name) ?? []) shared.setDrained(slot, drained, ramp);
    log.debug({ replica: name, drained, ramp_ms: ramp?.durationMs ?? null }, 'drain state in force');
  }

  /** Only the undrain of a drained replica begins a ramp. A drain ends it, and so does an undrain without one. */
  #changeRamp(name: string, before: DrainState, { drained, rampMs }: DrainState): void {
    if (drained || rampMs === undefined) this.#ramps.delete(name);
    else if (before.drained) this.#ramps.set(name, { beganMs: this.#nowMs(), durationMs: rampMs });
  }

  #nowMs(): number {
    return this.#collaborators.shared.ramps.nowMs();
  }
}
