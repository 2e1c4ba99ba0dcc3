import { setTimeout as sleep } from 'node:timers/promises';
import { newLogicalTimestamp } from '#replicas/drain-state';
import type { Drains } from '#replicas/drains';
import type { FleetLog } from './fleet-log.ts';
import type { MembershipFile, StoredMembership } from './membership-file.ts';
import { createFleetState, type FleetState, nextHeartbeat } from './rules/fleet-state.ts';
import { type FleetEffect, type FleetEvent, reconcile } from './rules/reconcile.ts';
import { HEARTBEAT_TTL_MS } from './timing.ts';
import type { Heartbeat } from './wire-format.ts';

/** What a membership works with. */
export interface MembershipCollaborators {
  readonly file: MembershipFile;
  readonly drains: Drains;
  readonly log: FleetLog;
}

/** How often a drain is checked again that some worker has not confirmed. */
const CONFIRM_CHECK_MS = 1_000;

/** Gives this process an id in the fleet. Rejects if the file cannot be read or written. */
export async function openMembership(
  name: string,
  collaborators: MembershipCollaborators,
): Promise<Membership> {
  const { drains, file } = collaborators;
  const last = await file.read();
  const id = newLogicalTimestamp(last.id ?? '');
  const home = last.home ?? id;
  const removed = last.id === null ? last.removed : [...last.removed, last.id].sort();
  const stored = { ...last, id, home, removed };
  await file.write(stored);
  const { members } = last;
  const state = createFleetState({ id, name, home, members, removed, drains: new Map(drains.all) });
  return new Membership(state, stored, collaborators);
}

/** The fleet state of this gateway. Carries out its effects: applies drains and writes the file. */
export class Membership {
  readonly #collaborators: MembershipCollaborators;
  #state: FleetState;
  #stored: StoredMembership;
  #isFileStale = false;
  /** Drain states that could not be applied. */
  #failed: Extract<FleetEvent, { kind: 'failed' }>[] = [];
  /** By replica name: the version applied last, and a promise that resolves when it is on disk. */
  readonly #storing = new Map<string, { readonly version: string; readonly stored: Promise<void> }>();
  readonly #waiters = new Set<() => void>();

  constructor(state: FleetState, stored: StoredMembership, collaborators: MembershipCollaborators) {
    this.#state = state;
    this.#stored = stored;
    this.#collaborators = collaborators;
  }

  get state(): FleetState {
    return this.#state;
  }

  /** Whether other gateways may know the previous process and wait for it. */
  get isKnown(): boolean {
    return this.#stored.isKnown;
  }

  /** Whether a caller waits for an event, or a drain state is not applied yet. */
  get isBusy(): boolean {
    return this.#waiters.size > 0 || [...this.#state.drains.keys()].some((name) => !this.isApplied(name));
  }

  isApplied(replica: string): boolean {
    const { drains, applied } = this.#state;
    return drains.get(replica)?.version === applied.get(replica);
  }

  /** Handles an event and starts its effects. */
  handle(event: FleetEvent): void {
    const before = this.#state;
    const { state, effects } = reconcile(before, event, performance.now());
    this.#state = state;
    for (const effect of effects) {
      if (effect.kind === 'persist') this.#isFileStale = true;
      else if (effect.kind === 'forget') this.#forget(effect.replicas);
      else void this.#apply(effect);
    }
    if (event.kind === 'read') this.#collaborators.log.merged(before, state);
    if (event.kind !== 'leaving') this.#collaborators.log.left(before, state);
    if (state.undrainedAtMs !== before.undrainedAtMs) this.#tickWhenHeartbeatsExpire();
    for (const check of [...this.#waiters]) check();
  }

  /** Retries the drain states that could not be applied. */
  retry(): void {
    for (const event of this.#failed.splice(0)) this.handle(event);
  }

  /** Creates the next heartbeat. `inflight` must be counted now. Call `persist` first: the heartbeat acknowledges peers. */
  nextHeartbeat(inflight: ReadonlyMap<string, number>): Heartbeat {
    const { state, heartbeat } = nextHeartbeat(this.#state, inflight, performance.now());
    this.#state = state;
    return heartbeat;
  }

  /** Resolves when the membership, with these changes, is on disk. */
  async persist(changes: Partial<Pick<StoredMembership, 'isKnown'>> = {}): Promise<void> {
    if (!this.#isFileStale && Object.keys(changes).length === 0) return;
    const { id, members, removed } = this.#state;
    this.#isFileStale = false;
    this.#stored = { ...this.#stored, id, members, removed, ...changes };
    try {
      await this.#collaborators.file.write(this.#stored);
    } catch (error) {
      this.#isFileStale = true;
      throw error;
    }
  }

  /** Resolves when a version of a replica's state is applied and on disk, or another version has replaced it. */
  async waitUntilStored(replica: string, version: string): Promise<void> {
    const isStarted = () => this.#storing.get(replica)?.version === version;
    const isOver = () => this.isApplied(replica) || this.#state.drains.get(replica)?.version !== version;
    await this.waitUntil(() => isStarted() || isOver());
    if (isStarted()) await this.#storing.get(replica)?.stored;
  }

  /** Resolves with true when the condition, checked after every event, is met; with false after the timeout. */
  waitUntil(isMet: () => boolean, timeoutMs?: number): Promise<boolean> {
    return new Promise((resolve) => {
      const end = (isDone: boolean) => {
        this.#waiters.delete(check);
        clearTimeout(timer);
        resolve(isDone);
      };
      const check = () => {
        if (isMet()) end(true);
      };
      const timer = timeoutMs === undefined ? undefined : setTimeout(() => end(false), timeoutMs);
      this.#waiters.add(check);
      check();
    });
  }

  /** By then a new undrain may be applied, even if no sync succeeds. */
  #tickWhenHeartbeatsExpire(): void {
    setTimeout(() => this.handle({ kind: 'tick' }), HEARTBEAT_TTL_MS + 1).unref();
  }

  #forget(replicas: readonly string[]): void {
    const { drains, log } = this.#collaborators;
    drains.forget(replicas);
    for (const replica of replicas) this.#storing.delete(replica);
    log.forgotten(replicas);
  }

  async #apply({ replica, drain }: Extract<FleetEffect, { kind: 'apply' }>): Promise<void> {
    const { drains, log } = this.#collaborators;
    const { version } = drain;
    const { stored } = drains.adopt(replica, drain);
    this.#storing.set(replica, { version, stored });
    try {
      await stored;
      await drains.confirm(replica);
      while (drains.stateOf(replica).version === version && !drains.isConfirmed(replica)) {
        await sleep(CONFIRM_CHECK_MS, undefined, { ref: false });
      }
      this.handle({ kind: 'applied', replica, version });
    } catch (error) {
      log.notStored(replica, error);
      this.#failed.push({ kind: 'failed', replica, version });
    }
  }
}
