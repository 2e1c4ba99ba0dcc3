import { setTimeout as sleep } from 'node:timers/promises';
import type { Drains } from '../replicas/control/drains.ts';
import { newLogicalTimestamp } from '../replicas/control/logical-timestamp.ts';
import type { FleetLog } from './fleet-log.ts';
import type { FleetMemory, Memory } from './fleet-memory.ts';
import { beginFleet, composeBeat, type FleetState } from './fleet-state.ts';
import { type FleetEffect, type FleetEvent, reconcile } from './reconcile.ts';
import type { Beat } from './sheets.ts';
import { PROMISE_MS } from './timing.ts';

/** What a member of a fleet works with. */
export interface MemberCollaborators {
  readonly memory: FleetMemory;
  readonly drains: Drains;
  readonly log: FleetLog;
}

/** How long after a worker did not answer it is looked again whether it has. */
const LOOK_AGAIN_MS = 1_000;

/** Begins a member: from now on this process has an id. Rejects if its memory cannot be read or written. */
export async function openMember(name: string, collaborators: MemberCollaborators): Promise<Member> {
  const { drains, memory } = collaborators;
  const last = await memory.read();
  const id = newLogicalTimestamp(last.id ?? '');
  const removed = last.id === null ? last.removed : [...last.removed, last.id].sort();
  const present = { ...last, id, removed };
  await memory.write(present);
  const state = beginFleet({ id, name, members: last.members, removed, drains: new Map(drains.all) });
  return new Member(state, present, collaborators);
}

/** This gateway's state in its fleet, and what the state asks for: drains in force, and a memory on disk. */
export class Member {
  readonly #with: MemberCollaborators;
  #state: FleetState;
  #memory: Memory;
  #isMemoryBehind = false;
  /** What could not be put into force. */
  #failed: Extract<FleetEvent, { kind: 'failed' }>[] = [];
  /** By replica's name, the state that was last put into force, and when it is on disk. */
  readonly #storing = new Map<string, { readonly version: string; readonly stored: Promise<void> }>();
  readonly #lookouts = new Set<() => void>();

  constructor(state: FleetState, memory: Memory, collaborators: MemberCollaborators) {
    this.#state = state;
    this.#memory = memory;
    this.#with = collaborators;
  }

  get state(): FleetState {
    return this.#state;
  }

  /** Whether other gateways may know the process before this one, and wait for it. */
  get isKnown(): boolean {
    return this.#memory.isKnown;
  }

  /** Whether somebody waits for something to happen, or a drain state waits for coming into force. */
  get isBusy(): boolean {
    return this.#lookouts.size > 0 || [...this.#state.drains.keys()].some((name) => !this.isInForce(name));
  }

  isInForce(replica: string): boolean {
    const { drains, inForce } = this.#state;
    return drains.get(replica)?.version === inForce.get(replica);
  }

  /** Takes an event, and begins what it asks for. */
  take(event: FleetEvent): void {
    const before = this.#state;
    const { state, effects } = reconcile(before, event, performance.now());
    this.#state = state;
    for (const effect of effects) {
      if (effect.kind === 'remember') this.#isMemoryBehind = true;
      else void this.#enforce(effect);
    }
    if (event.kind === 'heard') this.#with.log.heard(before, state);
    if (state.undrainedAtMs !== before.undrainedAtMs) this.#lookWhenPromiseEnds();
    for (const look of [...this.#lookouts]) look();
  }

  /** Tries again what could not be put into force. */
  retry(): void {
    for (const event of this.#failed.splice(0)) this.take(event);
  }

  /** The next beat; `inflight` is counted now. What it says to have heard has to be remembered before. */
  composeBeat(inflight: ReadonlyMap<string, number>): Beat {
    const { state, beat } = composeBeat(this.#state, inflight, performance.now());
    this.#state = state;
    return beat;
  }

  /** Resolves when what has to be remembered is on disk, with these news. */
  async remember(news: Partial<Pick<Memory, 'isKnown'>> = {}): Promise<void> {
    if (!this.#isMemoryBehind && Object.keys(news).length === 0) return;
    const { id, members, removed } = this.#state;
    this.#isMemoryBehind = false;
    this.#memory = { ...this.#memory, id, members, removed, ...news };
    try {
      await this.#with.memory.write(this.#memory);
    } catch (error) {
      this.#isMemoryBehind = true;
      throw error;
    }
  }

  /** Resolves when a version of a replica's state is in force and on disk, or another one came after it. */
  async untilStored(replica: string, version: string): Promise<void> {
    const isBegun = () => this.#storing.get(replica)?.version === version;
    const isOver = () => this.isInForce(replica) || this.#state.drains.get(replica)?.version !== version;
    await this.until(() => isBegun() || isOver());
    if (isBegun()) await this.#storing.get(replica)?.stored;
  }

  /** Resolves when the condition holds, looked at after every event; or with false when the time is up. */
  until(isMet: () => boolean, timeoutMs?: number): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isDone: boolean) => {
        this.#lookouts.delete(look);
        clearTimeout(timer);
        resolve(isDone);
      };
      const look = () => {
        if (isMet()) end(true);
      };
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => end(false), timeoutMs);
      this.#lookouts.add(look);
      look();
    });
  }

  /** The undrain that just came may be in force at once when the time is over, whatever the rounds do then. */
  #lookWhenPromiseEnds(): void {
    setTimeout(() => this.take({ kind: 'passed' }), PROMISE_MS + 1).unref();
  }

  async #enforce({ replica, drain }: Extract<FleetEffect, { kind: 'enforce' }>): Promise<void> {
    const { drains, log } = this.#with;
    const { version } = drain;
    const { stored } = drains.adopt(replica, drain);
    this.#storing.set(replica, { version, stored });
    try {
      await stored;
      await drains.confirm(replica);
      while (drains.stateOf(replica).version === version && !drains.isConfirmed(replica)) {
        await sleep(LOOK_AGAIN_MS, undefined, { ref: false });
      }
      this.take({ kind: 'enforced', replica, version });
    } catch (error) {
      log.notStored(replica, error);
      this.#failed.push({ kind: 'failed', replica, version });
    }
  }
}
