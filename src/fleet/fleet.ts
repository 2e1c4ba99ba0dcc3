import { type DrainChange, NEVER_DRAINED, nextDrainState } from '../replicas/control/drains.ts';
import { newLogicalTimestamp } from '../replicas/control/logical-timestamp.ts';
import { toLedger } from './fleet-state.ts';
import { type Member, type MemberCollaborators, openMember } from './member.ts';
import { type Rounds, startRounds } from './rounds.ts';
import { type Call, type Spread, spreadOf } from './spread.ts';
import {
  type FleetStanding,
  findVanished,
  type GatewayView,
  isJoined,
  isOnItsOwn,
  listGateways,
  type NotForgotten,
  standingOf,
} from './standing.ts';
import { type FleetStore, ForeignKeyError } from './store.ts';
import { BELIEF_MS, PROMISE_MS, ROUND_MS } from './timing.ts';

/** What a fleet works with. */
export interface FleetCollaborators extends MemberCollaborators {
  readonly store: FleetStore;
  /** This gateway's requests in flight by replica's name; zeros left out. */
  readonly inflight: () => ReadonlyMap<string, number>;
}

/** What a drain or an undrain did, and how it spreads. */
export interface FleetChange extends DrainChange {
  /**
   * Resolves when the call can be answered: when its state is in force here and the others had a moment to hear of
   * it, or when a later call overtook it. Never rejects.
   */
  readonly settled: Promise<void>;
  /** How far it has spread up to now. */
  spread(): Spread;
}

/** How long a call waits for the other gateways. */
const SPREAD_MS = 2_000;

/** How long a call waits for a round of its own: the rest of the present one and a whole one, of three slow answers each. */
const OWN_ROUND_MS = 6_500;

/** How often the ledger is written although nothing in it has changed: somebody may have damaged it in the store. */
const REPEAT_LEDGER_MS = 10_000;

/** How long a gateway that nobody knows tries to join. */
const JOIN_MS = 30_000;

/** Rounds follow each other at this distance while somebody waits; with many gateways, at one that they can bear. */
const BRISK_MS = { least: 100, byMember: 10 } as const;

/** Makes this process part of a fleet. Rejects if its memory cannot be read or written. */
export async function openFleet(name: string, collaborators: FleetCollaborators): Promise<Fleet> {
  return new Fleet(await openMember(name, collaborators), collaborators);
}

/** The gateways that share a store, as this one speaks with them. */
export class Fleet {
  readonly #with: FleetCollaborators;
  readonly #member: Member;
  readonly #startedAtMs = performance.now();
  #rounds: Rounds | null = null;
  /** When the round was asked for that wrote the ledger last. */
  #ledgerAtMs = Number.NEGATIVE_INFINITY;
  /** The last round that failed: when it began, and why. */
  #failure: { readonly atMs: number; readonly reason: string } | null = null;

  constructor(member: Member, collaborators: FleetCollaborators) {
    this.#member = member;
    this.#with = collaborators;
  }

  /**
   * Begins to speak and to listen; resolves when this gateway may serve. Rejects when it was never known to another
   * one and cannot join in 30 seconds.
   */
  async join(): Promise<void> {
    const member = this.#member;
    this.#rounds = startRounds(
      () => this.#round(),
      () => this.#everyMs(),
    );
    const mayServe = () =>
      isJoined(member.state) ||
      (member.isKnown && isOnItsOwn(member.state, this.#startedAtMs, performance.now()));
    if (!(await member.until(mayServe, JOIN_MS))) {
      const reason = this.#failure?.reason ?? 'a gateway does not answer';
      throw new Error(`the fleet could not be joined in ${JOIN_MS / 1_000}s: ${reason}`);
    }
    const hasJoined = isJoined(member.state);
    if (hasJoined) await member.remember({ isKnown: true });
    this.#with.log.begun(member.state, hasJoined);
  }

  /**
   * Drains, in force here when this returns; or undrains, in force here when nobody can believe any more that it is
   * drained. `stored` resolves when it is in force and on disk. Each call is a new version of the replica's state, also
   * where this gateway believes that the state is so: another one may have changed it a moment ago.
   */
  set(
    replica: string,
    drained: boolean,
    { reason, at }: { readonly reason: string | null; readonly at: string },
  ): FleetChange {
    const call = { replica, drained, calledAtMs: performance.now() };
    const before = this.#member.state.drains.get(replica) ?? NEVER_DRAINED;
    const after = nextDrainState(before, { drained, reason, since: at });
    this.#member.take({ kind: 'changed', replica, drain: after });
    this.#rounds?.wake();
    const stored = this.#member.untilStored(replica, after.version);
    // Whoever looks at it later, or not at all, is not to be ended by it.
    stored.catch(() => undefined);
    const spread = () => spreadOf(this.#member.state, call, performance.now());
    return { before, after, stored, spread, settled: this.#settle(call, spread, stored) };
  }

  /** How a replica stands in the whole fleet, given what this gateway has in flight on it. */
  standingOf(replica: string, ownInflight: number): FleetStanding {
    return standingOf(this.#member.state, replica, ownInflight, performance.now());
  }

  /** The gateways that are waited for, by name. */
  gateways(): readonly GatewayView[] {
    const own = this.#with.inflight().values();
    const ownInflight = own.reduce((sum, count) => sum + count, 0);
    return listGateways(this.#member.state, ownInflight, performance.now());
  }

  /** No longer waits for the gateways of a name that vanished. Answers why not, if it does not. */
  forget(name: string): NotForgotten | null {
    const ids = findVanished(this.#member.state, name, performance.now());
    if (typeof ids === 'string') return ids;
    this.#member.take({ kind: 'removed', ids });
    this.#rounds?.wake();
    return null;
  }

  /** Says that this gateway sends nothing any more, if it can be heard, and ends. Resolves in any case. */
  async leave(): Promise<void> {
    await this.#rounds?.stop();
    const { store, log } = this.#with;
    const { heardAtMs, id } = this.#member.state;
    try {
      if (heardAtMs === null || performance.now() - heardAtMs > BELIEF_MS) return;
      // First: whoever reads that it is gone does not wait for a process that starts from this memory.
      await this.#member.remember({ isKnown: false });
      this.#member.take({ kind: 'removed', ids: [id] });
      await store.writeLast(toLedger(this.#member.state));
    } catch (error) {
      log.unreachable(toReason(error));
    } finally {
      store.close();
    }
  }

  async #settle({ replica, calledAtMs }: Call, spread: () => Spread, stored: Promise<void>): Promise<void> {
    const member = this.#member;
    const isUnreachable = () => this.#failure !== null && this.#failure.atMs > calledAtMs;
    await member.until(() => spread().scope === 'fleet' || isUnreachable(), OWN_ROUND_MS);
    const leftMs = Math.max(0, calledAtMs + SPREAD_MS - performance.now());
    await member.until(() => spread().unconfirmed.length === 0 || isUnreachable(), leftMs);
    await stored.catch(() => undefined);
    // What overtook it is in force before the answer tells how the replica stands.
    if (spread().overtaken) await member.until(() => member.isInForce(replica), 2 * PROMISE_MS);
  }

  /** Reads what the others wrote, then writes what comes of it. */
  async #round(): Promise<void> {
    const member = this.#member;
    const askedAtMs = performance.now();
    const foreign: string[] = [];
    const { store, inflight, log } = this.#with;
    try {
      member.retry();
      const { foreign: ignored, ...read } = await store.read(this.#knownRevisions());
      foreign.push(...ignored);
      member.take({ kind: 'heard', askedAtMs, ...read, freshId: newLogicalTimestamp(member.state.id) });
      // Whoever is told in this beat that it was heard counts on being remembered.
      await member.remember();
      const beat = member.composeBeat(inflight());
      const { state } = member;
      const { revision, pinnedRevision } = state;
      const isDue = pinnedRevision !== revision || askedAtMs - this.#ledgerAtMs >= REPEAT_LEDGER_MS;
      const ledger = isDue ? toLedger(state) : null;
      const gone = [...read.revisions.keys()].filter((id) => state.removed.includes(id));
      await store.write({ beat, ledger, gone });
      if (isDue) this.#ledgerAtMs = askedAtMs;
      member.take({ kind: 'pinned', revision, askedAtMs });
      log.foreign(foreign);
      log.reachable(this.gateways());
    } catch (error) {
      if (error instanceof ForeignKeyError) log.foreign([...foreign, error.key]);
      this.#failure = { atMs: askedAtMs, reason: toReason(error) };
      log.unreachable(this.#failure.reason);
      member.take({ kind: 'passed' });
    }
  }

  #knownRevisions(): ReadonlyMap<string, number> {
    const { id, pinnedRevision, peers } = this.#member.state;
    const known = [...peers].map(([peer, { ledger }]) => [peer, ledger?.revision ?? 0] as const);
    return new Map([...known, [id, pinnedRevision]]);
  }

  #everyMs(): number {
    if (!this.#member.isBusy) return ROUND_MS;
    const { members } = this.#member.state;
    return Math.min(ROUND_MS, Math.max(BRISK_MS.least, BRISK_MS.byMember * members.size));
  }
}

/** What went wrong, in one line without the store's address. */
function toReason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const code = 'code' in error && typeof error.code === 'string' ? error.code : null;
  return code ?? error.message.split('\n', 1)[0]?.slice(0, 200) ?? error.name;
}
