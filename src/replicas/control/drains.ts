import type { SharedState } from '../shared/shared-state.ts';
import type { DrainFile } from './drain-file.ts';
import { newLogicalTimestamp } from './logical-timestamp.ts';

/** Whether a replica takes new requests, since when, and why. */
export interface DrainState {
  readonly drained: boolean;
  /** RFC 3339 of the last drain or undrain; `null` if there was none. */
  readonly since: string | null;
  /** What whoever drained or undrained it gave as the reason; `null` if nothing. */
  readonly reason: string | null;
  /** A stamp, greater with every change of this name's state, on whichever gateway it is made; `''`: there was none. */
  readonly version: string;
}

/** What a drain or undrain did. */
export interface DrainChange {
  readonly before: DrainState;
  readonly after: DrainState;
  /** Resolves once `after` is on disk; rejects if it cannot be stored: a restart would forget it. */
  readonly stored: Promise<void>;
}

/** What drains work with. */
export interface DrainCollaborators {
  readonly shared: SharedState;
  readonly file: DrainFile;
  /** Resolves when every worker has gone by; with the numbers, from 1, of those that did not answer in time. */
  readonly barrier: () => Promise<readonly number[]>;
}

/** How long after a worker did not answer it is asked again. */
const CONFIRM_AGAIN_MS = 1_000;

/** The state of a name that was never drained. */
export const NEVER_DRAINED: DrainState = { drained: false, since: null, reason: null, version: '' };

/**
 * The drain states, by name: also of replicas that are not configured at the moment, so that one that comes back
 * is as it was left. The one place where a drain is decided; the flags that workers read follow it at once.
 */
export class Drains {
  readonly #with: DrainCollaborators;
  readonly #states = new Map<string, DrainState>();
  /** The slots of a name: several while one that was removed finishes what it has in flight. */
  readonly #slots = new Map<string, Set<number>>();
  /** The version of each name's state that every worker is known to go by. */
  readonly #confirmed = new Map<string, string>();

  constructor(collaborators: DrainCollaborators) {
    this.#with = collaborators;
  }

  /** Takes over what an earlier run stored. Rejects on an unreadable file. */
  async restore(): Promise<void> {
    for (const [name, state] of await this.#with.file.read()) {
      this.#put(name, state);
      // No worker runs yet: none can have decided before.
      this.#confirmed.set(name, state.version);
    }
  }

  stateOf(name: string): DrainState {
    return this.#states.get(name) ?? NEVER_DRAINED;
  }

  /** Whether a name was ever drained, or undrained. */
  isRemembered(name: string): boolean {
    return this.#states.has(name);
  }

  /** The state of every name that was ever drained. */
  get all(): ReadonlyMap<string, DrainState> {
    return this.#states;
  }

  /** From now on a replica of this name is in this slot: its flag follows the state of the name. */
  bind(name: string, slot: number): void {
    this.#slots.set(name, (this.#slots.get(name) ?? new Set()).add(slot));
    this.#enforce(name);
  }

  /** No worker takes that slot for this name any more; the name's state is kept. */
  unbind(name: string, slot: number): void {
    const slots = this.#slots.get(name);
    slots?.delete(slot);
    if (slots?.size === 0) this.#slots.delete(name);
  }

  /** Drains or undrains, in force when this returns. */
  set(
    name: string,
    drained: boolean,
    { reason, at }: { readonly reason: string | null; readonly at: string },
  ): DrainChange {
    return this.adopt(name, nextDrainState(this.stateOf(name), { drained, reason, since: at }));
  }

  /** Takes over a state that was decided before, here or on another gateway. In force when this returns. */
  adopt(name: string, after: DrainState): DrainChange {
    const before = this.stateOf(name);
    if (after !== before) this.#put(name, after);
    const stored = this.#with.file.write(this.#states);
    // Whoever looks at it later, or not at all, is not to be ended by it.
    stored.catch(() => undefined);
    return { before, after, stored };
  }

  /**
   * Resolves when no worker can be in the middle of writing a request that it decided on before the last change:
   * each has answered a message, and so has left the tick in which it might have. Returns those that did not answer;
   * they are asked again until they do, or until the state changes.
   */
  async confirm(name: string): Promise<readonly number[]> {
    const { version } = this.stateOf(name);
    const silent = await this.#with.barrier();
    if (version !== this.stateOf(name).version) return silent;
    if (silent.length === 0) this.#confirmed.set(name, version);
    else setTimeout(() => void this.confirm(name), CONFIRM_AGAIN_MS).unref();
    return silent;
  }

  /** Whether every worker is known to go by the present state of this name. */
  isConfirmed(name: string): boolean {
    const { version } = this.stateOf(name);
    return version === '' || this.#confirmed.get(name) === version;
  }

  #put(name: string, state: DrainState): void {
    this.#states.set(name, state);
    this.#enforce(name);
  }

  #enforce(name: string): void {
    for (const slot of this.#slots.get(name) ?? []) {
      this.#with.shared.setDrained(slot, this.stateOf(name).drained);
    }
  }
}

/**
 * The state after `before` that somebody wants, always a new version: another gateway may have changed it without
 * this one knowing. Setting what is set already keeps its time, and its reason unless another one is given.
 */
export function nextDrainState(before: DrainState, wanted: Omit<DrainState, 'version'>): DrainState {
  const version = newLogicalTimestamp(before.version);
  if (wanted.drained !== before.drained) return { ...wanted, version };
  return { ...before, reason: wanted.reason ?? before.reason, version };
}
