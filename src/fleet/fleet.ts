import { setTimeout as sleep } from 'node:timers/promises';
import { type DrainChange, type Drains, NEVER_DRAINED, nextDrainState } from '../replicas/drains.ts';
import { newStamp } from '../replicas/stamp.ts';
import type { FleetLog } from './fleet-log.ts';
import type { FleetMemory, Memory } from './fleet-memory.ts';
import { beginFleet, composeBeat, type FleetState, toLedger } from './fleet-state.ts';
import { type FleetEffect, type FleetEvent, reconcile } from './reconcile.ts';
import { type Rounds, startRounds } from './rounds.ts';
import {
  type FleetStanding,
  findVanished,
  type GatewayView,
  isJoined,
  isOnItsOwn,
  listGateways,
  type NotForgotten,
  standingOf,
  unheardOf,
} from './standing.ts';
import type { FleetStore } from './store.ts';
import { BELIEF_MS, ROUND_MS } from './timing.ts';

/** What a fleet works with. */
export interface FleetCollaborators {
  readonly store: FleetStore;
  readonly memory: FleetMemory;
  readonly drains: Drains;
  /** This gateway's requests in flight by replica's name; zeros left out. */
  readonly inflight: () => ReadonlyMap<string, number>;
  readonly log: FleetLog;
}

/** How far a drain or an undrain has spread. */
export interface Spread {
  /** `local`: the store did not take it in time. The others hear of it later. */
  readonly scope: 'fleet' | 'local';
  /** The names of the gateways that did not say in time that they go by it. */
  readonly unconfirmed: readonly string[];
}

/** How long a drain waits for the others. */
const SPREAD_MS = 2_000;

/** How long a gateway that nobody knows tries to join. */
const JOIN_MS = 30_000;

/** Rounds follow each other at this distance while somebody waits; with many gateways, at one that they can bear. */
const BRISK_MS = { least: 100, byMember: 10 } as const;

/** Begins the fleet of this process: from now on it has an id. Rejects if its memory cannot be read or written. */
export async function openFleet(name: string, collaborators: FleetCollaborators): Promise<Fleet> {
  const { drains, memory } = collaborators;
  const last = await memory.read();
  const id = newStamp(last.id ?? '');
  const removed = last.id === null ? last.removed : [...last.removed, last.id].sort();
  const present = { ...last, id, removed };
  await memory.write(present);
  const state = beginFleet({ id, name, members: last.members, removed, drains: drains.all });
  return new Fleet(state, present, collaborators);
}

/** This gateway as one of a fleet: what it says, what it hears, and what it makes of it. */
export class Fleet {
  readonly #with: FleetCollaborators;
  readonly #startedAtMs = performance.now();
  #state: FleetState;
  #memory: Memory;
  #isMemoryBehind = false;
  /** What could not be put into force: tried again with the next round. */
  #failed: Extract<FleetEvent, { kind: 'failed' }>[] = [];
  /** By replica's name, the state that was last put into force, and when it is on disk. */
  readonly #storing = new Map<string, { readonly version: string; readonly stored: Promise<void> }>();
  readonly #lookouts = new Set<() => void>();
  #rounds: Rounds | null = null;
  /** When the last round began that failed. */
  #failedAtMs = Number.NEGATIVE_INFINITY;
  /** Why the last round failed; null if it did not. */
  #failure: string | null = null;

  constructor(state: FleetState, memory: Memory, collaborators: FleetCollaborators) {
    this.#state = state;
    this.#memory = memory;
    this.#with = collaborators;
  }

  /**
   * Begins to speak and to listen; resolves when this gateway may serve. Rejects when it was never known to another
   * one and cannot join in 30 seconds.
   */
  async join(): Promise<void> {
    this.#rounds = startRounds(
      () => this.#round(),
      () => this.#pauseMs(),
    );
    const { isKnown } = this.#memory;
    const mayServe = () =>
      isJoined(this.#state) || (isKnown && isOnItsOwn(this.#state, this.#startedAtMs, performance.now()));
    if (!(await this.#until(mayServe, JOIN_MS))) {
      throw new Error(
        `the fleet could not be joined in ${JOIN_MS / 1_000}s: ${this.#failure ?? 'no answer'}`,
      );
    }
    const hasJoined = isJoined(this.#state);
    if (hasJoined) await this.#remember({ isKnown: true });
    this.#with.log.begun(this.#state, hasJoined);
  }

  /**
   * Drains, in force here when this returns; or undrains, in force here when nobody can believe any more that it is
   * drained. `stored` resolves when it is in force and on disk.
   */
  set(
    replica: string,
    drained: boolean,
    { reason, at }: { readonly reason: string | null; readonly at: string },
  ): DrainChange {
    const before = this.#state.drains.get(replica) ?? NEVER_DRAINED;
    const after = nextDrainState(before, { drained, reason, since: at });
    if (after !== before) this.#take({ kind: 'changed', replica, drain: after });
    this.#rounds?.wake();
    const stored = this.#untilStored(replica, after.version);
    // Whoever looks at it later, or not at all, is not to be ended by it.
    stored.catch(() => undefined);
    return { before, after, stored };
  }

  /** Waits for the others to go by the present state of a replica, or for what keeps them from it. */
  async spread(replica: string): Promise<Spread> {
    const sinceMs = performance.now();
    const { revision } = this.#state;
    const isPinned = () => this.#state.pinnedRevision >= revision;
    await this.#until(
      () => (isPinned() && this.#unconfirmed(replica).length === 0) || this.#failedAtMs > sinceMs,
      SPREAD_MS,
    );
    return { scope: isPinned() ? 'fleet' : 'local', unconfirmed: this.#unconfirmed(replica) };
  }

  /** How a replica stands in the whole fleet, given what this gateway has in flight on it. */
  standingOf(replica: string, ownInflight: number): FleetStanding {
    return standingOf(this.#state, replica, ownInflight, performance.now());
  }

  /** The gateways that are waited for, by name. */
  gateways(): readonly GatewayView[] {
    const own = this.#with.inflight().values();
    return listGateways(
      this.#state,
      own.reduce((sum, count) => sum + count, 0),
      performance.now(),
    );
  }

  /** No longer waits for the gateways of a name that vanished. Answers why not, if it does not. */
  forget(name: string): NotForgotten | null {
    const ids = findVanished(this.#state, name, performance.now());
    if (typeof ids === 'string') return ids;
    this.#take({ kind: 'removed', ids });
    this.#rounds?.wake();
    return null;
  }

  /** Says that this gateway sends nothing any more, if it can be heard, and ends. Resolves in any case. */
  async leave(): Promise<void> {
    await this.#rounds?.stop();
    const { store, log } = this.#with;
    const { heardAtMs, id } = this.#state;
    try {
      if (heardAtMs === null || performance.now() - heardAtMs > BELIEF_MS) return;
      // First: whoever reads that it is gone does not wait for a process that starts from this memory.
      await this.#remember({ isKnown: false });
      this.#take({ kind: 'removed', ids: [id] });
      await store.writeLast(toLedger(this.#state));
    } catch (error) {
      log.unreachable(toReason(error));
    } finally {
      store.close();
    }
  }

  async #untilStored(replica: string, version: string): Promise<void> {
    const isBegun = () => this.#storing.get(replica)?.version === version;
    const isOver = () => this.#isInForce(replica) || this.#state.drains.get(replica)?.version !== version;
    await this.#until(() => isBegun() || isOver());
    if (isBegun()) await this.#storing.get(replica)?.stored;
  }

  #isInForce(replica: string): boolean {
    const { drains, inForce } = this.#state;
    return drains.get(replica)?.version === inForce.get(replica);
  }

  #unconfirmed(replica: string): readonly string[] {
    const drain = this.#state.drains.get(replica) ?? NEVER_DRAINED;
    return drain.drained
      ? this.standingOf(replica, 0).unconfirmed
      : unheardOf(this.#state, replica, drain.version);
  }

  /** Resolves when the condition holds, looked at after every event; or with false when the time is up. */
  #until(isMet: () => boolean, timeoutMs?: number): Promise<boolean> {
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

  async #round(): Promise<void> {
    const askedAtMs = performance.now();
    const { store, inflight, log } = this.#with;
    try {
      for (const event of this.#failed.splice(0)) this.#take(event);
      const read = await store.read(this.#knownRevisions());
      const before = this.#state;
      this.#take({ kind: 'heard', askedAtMs, ...read, freshId: newStamp(before.id) });
      log.heard(before, this.#state);
      // Whoever is told in this beat that it was heard counts on being remembered.
      if (this.#isMemoryBehind) await this.#remember({});
      const { state, beat } = composeBeat(this.#state, inflight(), performance.now());
      this.#state = state;
      const { revision } = state;
      const ledger = state.pinnedRevision === revision ? null : toLedger(state);
      const gone = [...read.revisions.keys()].filter((id) => state.removed.includes(id));
      await store.write({ beat, ledger, gone });
      this.#take({ kind: 'pinned', revision });
      this.#failure = null;
      log.reachable();
    } catch (error) {
      this.#failedAtMs = askedAtMs;
      this.#failure = toReason(error);
      log.unreachable(this.#failure);
      this.#take({ kind: 'passed' });
    }
  }

  #knownRevisions(): ReadonlyMap<string, number> {
    const known = [...this.#state.peers].map(([id, { ledger }]) => [id, ledger?.revision ?? 0] as const);
    return new Map([...known, [this.#state.id, this.#state.pinnedRevision]]);
  }

  #pauseMs(): number {
    const { drains, members } = this.#state;
    const isBusy = [...drains.keys()].some((replica) => !this.#isInForce(replica));
    if (!isBusy && this.#lookouts.size === 0) return ROUND_MS;
    return Math.min(ROUND_MS, Math.max(BRISK_MS.least, BRISK_MS.byMember * members.size));
  }

  #take(event: FleetEvent): void {
    const { state, effects } = reconcile(this.#state, event, performance.now());
    this.#state = state;
    for (const effect of effects) {
      if (effect.kind === 'remember') this.#isMemoryBehind = true;
      else void this.#enforce(effect);
    }
    for (const look of [...this.#lookouts]) look();
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
        await sleep(ROUND_MS, undefined, { ref: false });
      }
      this.#take({ kind: 'enforced', replica, version });
      this.#rounds?.wake();
    } catch (error) {
      log.notStored(replica, error);
      this.#failed.push({ kind: 'failed', replica, version });
    }
  }

  async #remember(news: Partial<Memory>): Promise<void> {
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
}

/** What went wrong, in one line without the store's address. */
function toReason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  return code ?? error.message.split('\n', 1)[0]?.slice(0, 200) ?? error.name;
}
