import {
  type ChangeDetails,
  type DrainChange,
  type DrainState,
  NEVER_DRAINED,
  newLogicalTimestamp,
  nextDrainState,
} from '#replicas/drain-state';
import { KEPT_GONE_MS, LOOK_FOR_GONE_MS } from '#replicas/drains';
import type { BackgroundCount } from '#replicas/terms';
import { type ClientLimitsPort, ClientUseExchange } from './client-use.ts';
import { type FleetStore, WrongTypeError } from './fleet-store.ts';
import { type InflightPort, InflightShares, type SharesReport } from './inflight-shares.ts';
import { type Membership, type MembershipCollaborators, openMembership } from './membership.ts';
import {
  drainStatusOf,
  type FleetDrainStatus,
  type OwnWork,
  type Propagation,
  propagationOf,
  type RequestedDrain,
} from './rules/drain-status.ts';
import { toSnapshot } from './rules/fleet-state.ts';
import { goneElsewhereSince } from './rules/forget-names.ts';
import {
  type ForgetError,
  findVanished,
  type GatewayStatus,
  isJoined,
  mayServeAlone,
  presentGateways,
  toGatewayStatuses,
} from './rules/liveness.ts';
import { rampsOnJoining, toRampReports } from './rules/ramps.ts';
import { type SyncLoop, startSyncLoop } from './sync-loop.ts';
import { HEARTBEAT_TTL_MS, HEARTBEAT_VALID_MS, SYNC_INTERVAL_MS } from './timing.ts';

/** What a fleet works with. */
export interface FleetCollaborators extends MembershipCollaborators {
  /** The version of this gateway. */
  readonly version: string;
  readonly store: FleetStore;
  /** This gateway's requests in flight by replica name, without zeros. */
  readonly inflight: () => ReadonlyMap<string, number>;
  /** What replicas go on with after their answers to it, by name, without zeros. */
  readonly background: () => ReadonlyMap<string, BackgroundCount>;
  /** When all of that is older than `limits.background`: monotonic milliseconds. */
  readonly backgroundUntilMs: () => number;
  /** `limits.background`. */
  readonly backgroundLimitMs: () => number;
  readonly clientLimits: ClientLimitsPort & InflightPort;
}

/** What a drain or an undrain changed, and how it propagates. */
export interface FleetChange extends DrainChange {
  /**
   * Resolves when the call can be answered: its state is applied here and the other gateways had time to read it, or
   * a later call has overtaken it. Never rejects.
   */
  readonly settled: Promise<void>;
  /** How far it has propagated so far. */
  propagation(): Propagation;
}

/** How long a call waits for the other gateways. */
const PROPAGATION_MS = 2_000;

/**
 * How long a call waits for a sync of its own: the rest of the current one and a whole one, with three slow answers
 * each.
 */
const OWN_SYNC_MS = 6_500;

/** How often an unchanged snapshot is written again, in case it was damaged in the store. */
const REPUBLISH_MS = 10_000;

/** How long a gateway that no other gateway knows tries to join. */
const JOIN_MS = 30_000;

/** After so long, a start says that it waits. */
const QUIET_MS = 1_000;

/** The interval between syncs while a caller waits. It grows with the number of gateways to limit the load. */
const FAST_SYNC_MS = { min: 100, perMember: 10 } as const;

/** Makes this process part of a fleet. Rejects if the membership file cannot be read or written. */
export async function openFleet(name: string, collaborators: FleetCollaborators): Promise<Fleet> {
  return new Fleet(await openMembership(name, collaborators), collaborators);
}

/** This gateway's view of the gateways that share a store, and its exchange with them. */
export class Fleet {
  readonly #collaborators: FleetCollaborators;
  readonly #membership: Membership;
  readonly #clientUse: ClientUseExchange;
  readonly #inflightShares: InflightShares;
  readonly #startedAtMs = performance.now();
  #syncLoop: SyncLoop | null = null;
  /** The other gateways that divide the limits. */
  #others: readonly SharesReport[] = [];
  /** When the sync started that last wrote the snapshot. */
  #publishedAtMs = Number.NEGATIVE_INFINITY;
  /** When it was last noted which names are gone, or the process started: discovery needs time. */
  #lookedAtMs = performance.now();
  #hasLooked = false;
  /** The last sync that failed: when it started, and why. */
  #failure: { readonly atMs: number; readonly reason: string } | null = null;
  /** Whether the last sync failed. */
  #isFailing = false;
  /** When a sync that fails is told as what the start waits for. */
  #tellsWaitAtMs = Number.POSITIVE_INFINITY;

  constructor(membership: Membership, collaborators: FleetCollaborators) {
    this.#membership = membership;
    this.#collaborators = collaborators;
    this.#clientUse = new ClientUseExchange(collaborators.clientLimits);
    this.#inflightShares = new InflightShares(collaborators.clientLimits);
  }

  /**
   * Starts to sync. Resolves when this gateway may serve. Rejects if no other gateway knows it and it cannot join
   * within 30 seconds.
   */
  async join(): Promise<void> {
    const membership = this.#membership;
    this.#tellsWaitAtMs = performance.now() + QUIET_MS;
    this.#syncLoop = startSyncLoop(
      () => this.#sync(),
      () => this.#intervalMs(),
    );
    const mayServe = () =>
      isJoined(membership.state) ||
      (membership.isKnown && mayServeAlone(membership.state, this.#startedAtMs, performance.now()));
    const mayStart = await membership.waitUntil(mayServe, JOIN_MS);
    this.#tellsWaitAtMs = Number.POSITIVE_INFINITY;
    if (!mayStart) {
      const reason = this.#failure?.reason ?? 'a gateway does not answer';
      throw new Error(`the fleet could not be joined in ${JOIN_MS / 1_000}s: ${reason}`);
    }
    const hasJoined = isJoined(membership.state);
    if (hasJoined) await membership.persist({ isKnown: true });
    for (const [replica, ramp] of rampsOnJoining(membership.state, performance.now())) {
      this.#collaborators.drains.setRamp(replica, ramp);
    }
    this.#collaborators.log.started(membership.state, hasJoined);
  }

  /**
   * Drains or undrains a replica. A drain applies here when this returns; an undrain applies when no gateway can still
   * rely on the drain. `stored` resolves when the state is applied and on disk. Each call makes a new version, even if
   * nothing changes: another gateway may have changed the state a moment ago.
   */
  set(replica: string, drained: boolean, details: ChangeDetails): FleetChange {
    const call = { replica, drained, calledAtMs: performance.now() };
    const before = this.#stateOf(replica);
    const after = nextDrainState(before, drained, details);
    if (after !== before) this.#membership.handle({ kind: 'changed', replica, drain: after });
    this.#syncLoop?.wake();
    const stored = this.#membership.waitUntilStored(replica, after.version);
    // A caller that never awaits it must not cause an unhandled rejection.
    stored.catch(() => undefined);
    const propagation = () => propagationOf(this.#membership.state, call, performance.now());
    return { before, after, stored, propagation, settled: this.#settle(call, propagation, stored) };
  }

  /** The logical timestamp of a call that comes now. */
  newVersion(replica: string): string {
    return newLogicalTimestamp(this.#stateOf(replica).version);
  }

  #stateOf(replica: string): DrainState {
    const { drains, forgotten } = this.#membership.state;
    // A state that was forgotten may still be on its way: the next one must be later.
    return drains.get(replica) ?? { ...NEVER_DRAINED, version: forgotten.get(replica) ?? '' };
  }

  /** The drain status of a replica in the whole fleet. `own`: what this gateway has in flight on it. */
  drainStatusOf(replica: string, own: OwnWork): FleetDrainStatus {
    return drainStatusOf(this.#membership.state, replica, own, performance.now());
  }

  /** The members of the fleet, by name. */
  gateways(): readonly GatewayStatus[] {
    const own = this.#collaborators.inflight().values();
    const ownInflight = own.reduce((sum, count) => sum + count, 0);
    const self = { inflight: ownInflight, version: this.#collaborators.version };
    return toGatewayStatuses(this.#membership.state, self, performance.now());
  }

  /** Why the last exchange with the shared state failed; null if it did not. */
  get failure(): string | null {
    return this.#isFailing ? (this.#failure?.reason ?? null) : null;
  }

  /** Forgets the vanished gateways of a name. Returns why not if there are none. */
  forget(name: string): ForgetError | null {
    const ids = findVanished(this.#membership.state, name, performance.now());
    if (typeof ids === 'string') return ids;
    const version = newLogicalTimestamp('');
    const restMs = this.#collaborators.backgroundLimitMs();
    this.#membership.handle({ kind: 'removed', ids, version, restMs });
    this.#syncLoop?.wake();
    return null;
  }

  /** Stops, and tells the other gateways so if the store can be reached. Never rejects. */
  async leave(): Promise<void> {
    await this.#syncLoop?.stop();
    const { store, log } = this.#collaborators;
    const { readAtMs, id } = this.#membership.state;
    const background = this.#collaborators.background();
    try {
      if (readAtMs === null || performance.now() - readAtMs > HEARTBEAT_VALID_MS) return;
      // Write the file first: other gateways stop waiting for this one when they read that it is gone.
      await this.#membership.persist({ isKnown: false });
      this.#membership.handle({
        kind: 'leaving',
        version: newLogicalTimestamp(id),
        background,
        restMs: Math.max(0, this.#collaborators.backgroundUntilMs() - performance.now()),
      });
      await store.writeFinal(toSnapshot(this.#membership.state, performance.now()));
    } catch (error) {
      log.notLeft(toReason(error));
    } finally {
      store.close();
    }
  }

  async #settle(
    { replica, calledAtMs }: RequestedDrain,
    propagation: () => Propagation,
    stored: Promise<void>,
  ): Promise<void> {
    const membership = this.#membership;
    const isUnreachable = () => this.#failure !== null && this.#failure.atMs > calledAtMs;
    await membership.waitUntil(() => propagation().scope === 'fleet' || isUnreachable(), OWN_SYNC_MS);
    const leftMs = Math.max(0, calledAtMs + PROPAGATION_MS - performance.now());
    await membership.waitUntil(() => propagation().unconfirmed.length === 0 || isUnreachable(), leftMs);
    await stored.catch(() => undefined);
    // The answer contains the replica's state, so the later call must be applied first.
    if (propagation().overtaken)
      await membership.waitUntil(() => membership.isApplied(replica), 2 * HEARTBEAT_TTL_MS);
  }

  /** Reads what the other gateways wrote, merges it, and writes this gateway's messages. */
  async #sync(): Promise<void> {
    const membership = this.#membership;
    const syncStartedAtMs = performance.now();
    const foreign: string[] = [];
    const { store, inflight, background: readBackground, drains, log } = this.#collaborators;
    try {
      membership.retry();
      const { foreign: ignored, ...read } = await store.read(this.#knownRevisions());
      foreign.push(...ignored);
      this.#clientUse.take(read.heartbeats, membership.state.id);
      membership.handle({
        kind: 'read',
        syncStartedAtMs,
        ...read,
        newId: newLogicalTimestamp(membership.state.id),
      });
      this.#others = presentGateways(membership.state, this.#others, performance.now());
      this.#inflightShares.take(this.#others, membership.state.id);
      this.#look(syncStartedAtMs);
      // The heartbeat acknowledges peers. They rely on being remembered after a restart.
      await membership.persist();
      const used = this.#clientUse.nextReport();
      const running = this.#inflightShares.nextReport();
      const ramps = toRampReports(membership.state, (replica) => drains.rampOf(replica));
      // After the requests in flight: a response in the background is counted before its request ceases to be one.
      const next = membership.nextHeartbeat(inflight());
      const background = readBackground();
      const heartbeat = {
        ...next,
        ...(background.size === 0 ? {} : { background }),
        ...(used.size === 0 ? {} : { used }),
        ...(ramps.size === 0 ? {} : { ramps }),
        ...(running.size === 0 ? {} : { running }),
        version: this.#collaborators.version,
      };
      const { state } = membership;
      const { revision, publishedRevision } = state;
      const isDue = publishedRevision !== revision || syncStartedAtMs - this.#publishedAtMs >= REPUBLISH_MS;
      const snapshot = isDue ? toSnapshot(state, performance.now()) : null;
      const removedIds = [...read.revisions.keys()].filter((id) => state.removed.includes(id));
      await store.write({ heartbeat, snapshot, removedIds });
      if (isDue) this.#publishedAtMs = syncStartedAtMs;
      membership.handle({ kind: 'published', revision, syncStartedAtMs });
      this.#isFailing = false;
      log.foreign(foreign);
      log.seen(this.gateways());
    } catch (error) {
      if (error instanceof WrongTypeError) log.foreign([...foreign, error.key]);
      const reason = toReason(error);
      this.#failure = { atMs: syncStartedAtMs, reason };
      this.#isFailing = true;
      if (performance.now() >= this.#tellsWaitAtMs) {
        this.#tellsWaitAtMs = Number.POSITIVE_INFINITY;
        log.waits(reason, store.address, membership.isKnown ? HEARTBEAT_TTL_MS : JOIN_MS);
      }
      membership.handle({ kind: 'tick' });
      // By then the others do not count this gateway any more.
      const { readAtMs } = membership.state;
      if (readAtMs !== null && syncStartedAtMs - readAtMs > HEARTBEAT_VALID_MS)
        this.#inflightShares.standAlone();
    }
  }

  /** Tells which names this gateway has, and forgets those that no gateway has had for long. */
  #look(nowMs: number): void {
    const { drains } = this.#collaborators;
    const nowEpochMs = Date.now();
    if (nowMs - this.#lookedAtMs >= LOOK_FOR_GONE_MS) {
      this.#lookedAtMs = nowMs;
      this.#hasLooked = true;
      drains.noteGone(nowEpochMs, (name) => goneElsewhereSince(this.#membership.state, name));
    }
    this.#membership.handle({
      kind: 'looked',
      gone: this.#hasLooked ? drains.gone : new Map(),
      isPresent: (name) => drains.isPresent(name),
      nowEpochMs,
      keptMs: KEPT_GONE_MS,
      newStamp: newLogicalTimestamp,
    });
  }

  #knownRevisions(): ReadonlyMap<string, number> {
    const { id, publishedRevision, peers } = this.#membership.state;
    const known = [...peers].map(([peer, { snapshot }]) => [peer, snapshot?.revision ?? 0] as const);
    return new Map([...known, [id, publishedRevision]]);
  }

  #intervalMs(): number {
    if (!this.#membership.isBusy) return SYNC_INTERVAL_MS;
    const { members } = this.#membership.state;
    return Math.min(SYNC_INTERVAL_MS, Math.max(FAST_SYNC_MS.min, FAST_SYNC_MS.perMember * members.size));
  }
}

/** Says in one line why a sync failed, without the store's address. An error of the system is one of the file. */
function toReason(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown error';
  const text = 'code' in error ? `fleet.json cannot be written (${error.code})` : error.message;
  return text.split('\n', 1)[0]?.slice(0, 200) ?? error.name;
}
