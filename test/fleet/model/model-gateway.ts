import { type DrainState, NEVER_DRAINED } from '#replicas/drain-state';
import { NO_BACKGROUND } from '#replicas/terms';
import {
  drainStatusOf,
  type FleetDrainStatus,
  type Propagation,
  propagationOf,
  type RequestedDrain,
} from '../../../src/fleet/rules/drain-status.ts';
import {
  createFleetState,
  type FleetState,
  nextHeartbeat,
  toSnapshot,
} from '../../../src/fleet/rules/fleet-state.ts';
import { findVanished, isJoined, mayServeAlone } from '../../../src/fleet/rules/liveness.ts';
import { type FleetEvent, reconcile } from '../../../src/fleet/rules/reconcile.ts';
import { SYNC_INTERVAL_MS } from '../../../src/fleet/timing.ts';
import type { Heartbeat, Snapshot } from '../../../src/fleet/wire-format.ts';
import type { ModelClock } from './model-clock.ts';
import { type LinkCollaborators, ModelLink } from './model-link.ts';
import type { ModelStore } from './model-store.ts';

/** What a gateway works with. */
interface ModelCollaborators extends LinkCollaborators {
  readonly store: ModelStore;
}

/** What a gateway's state_dir holds. */
interface Disk {
  id: string | null;
  home: string | null;
  members: ReadonlyMap<string, string>;
  removed: readonly string[];
  /** Whether other gateways may know the process with this id. */
  isKnown: boolean;
  drains: ReadonlyMap<string, DrainState>;
}

/** A running process of a gateway. */
interface Process {
  state: FleetState;
  isServing: boolean;
  readonly startedAtMs: number;
}

const emptyDisk = (): Disk => ({
  id: null,
  home: null,
  members: new Map(),
  removed: [],
  isKnown: false,
  drains: new Map(),
});

/** A call and the version that it made. */
export interface ModelRequestedDrain extends RequestedDrain {
  readonly version: string;
}

/** The pause between syncs while a call waits. */
const FAST_SYNC_MS = 100;

/** How long the model checks what could be answered to a call: longer than any answer takes. */
const CALL_OPEN_MS = 8_000;

/**
 * One gateway of the model: the real reconciliation, and a model of src/fleet/joined-fleet.ts and the workers in which every
 * step takes time.
 */
export class ModelGateway {
  readonly name: string;
  /** Its link to the store. */
  readonly link: ModelLink;
  readonly #collaborators: ModelCollaborators;
  readonly #clock: ModelClock;
  #disk = emptyDisk();
  #process: Process | null = null;
  readonly #flags = new Map<string, boolean>();
  /** Replicas whose drain some worker has not confirmed: it may have chosen the replica before. */
  readonly #unconfirmed = new Set<string>();
  readonly #inflight = new Map<string, number>();
  #calls: readonly ModelRequestedDrain[] = [];

  constructor(name: string, clock: ModelClock, collaborators: ModelCollaborators) {
    this.name = name;
    this.#clock = clock;
    this.#collaborators = collaborators;
    this.link = new ModelLink(collaborators);
  }

  get isRunning(): boolean {
    return this.#process !== null;
  }

  get isServing(): boolean {
    return this.#process?.isServing === true;
  }

  /** Whether it sends requests now, or will if it starts and cannot reach the store. */
  get canServe(): boolean {
    return this.isServing || this.#disk.isKnown;
  }

  get isConnected(): boolean {
    return this.link.isHealthy;
  }

  /** The ids of the gateways that it remembers. */
  get remembers(): readonly string[] {
    return [...(this.#process?.state.members ?? this.#disk.members).keys()];
  }

  /** The id by which the other gateways may know it. */
  get id(): string | null {
    return this.#process?.state.id ?? this.#disk.id;
  }

  get drains(): ReadonlyMap<string, DrainState> {
    return this.#process?.state.drains ?? new Map();
  }

  drainStatusOf(replica: string): FleetDrainStatus | null {
    if (this.#process === null) return null;
    const own = { inflight: this.inflightOf(replica), background: NO_BACKGROUND };
    return drainStatusOf(this.#process.state, replica, own, this.#clock.nowMs);
  }

  inflightOf(replica: string): number {
    return this.#inflight.get(replica) ?? 0;
  }

  /** Whether it could send a request: the replica is not drained, or a worker has not confirmed the drain. */
  canStartRequest(replica: string): boolean {
    return this.isServing && (this.#flags.get(replica) !== true || this.#unconfirmed.has(replica));
  }

  startRequest(replica: string): void {
    if (this.canStartRequest(replica)) this.#inflight.set(replica, this.inflightOf(replica) + 1);
  }

  endRequest(replica: string): void {
    this.#inflight.set(replica, Math.max(0, this.inflightOf(replica) - 1));
  }

  /** Returns whether the gateway was running. */
  setDrained(replica: string, drained: boolean): boolean {
    if (this.#process === null) return false;
    const before = this.#process.state.drains.get(replica) ?? NEVER_DRAINED;
    const version = this.#clock.stampAfter(before.version);
    this.#calls = [...this.openCalls, { replica, drained, version, calledAtMs: this.#clock.nowMs }];
    this.#handle({ kind: 'changed', replica, drain: { drained, version, since: null, reason: null } });
    return true;
  }

  /** The calls that may not have been answered yet. */
  get openCalls(): readonly ModelRequestedDrain[] {
    return this.#calls.filter(({ calledAtMs }) => this.#clock.nowMs - calledAtMs < CALL_OPEN_MS);
  }

  /** What the gateway would answer to a call now. */
  answerTo(call: RequestedDrain): Propagation | null {
    return this.#process === null ? null : propagationOf(this.#process.state, call, this.#clock.nowMs);
  }

  start(): void {
    if (this.#process !== null) return;
    const disk = this.#disk;
    const id = this.#clock.stampAfter(disk.id ?? '');
    const removed = disk.id === null ? disk.removed : [...disk.removed, disk.id].sort();
    const home = disk.home ?? id;
    const state = createFleetState({ ...disk, id, home, name: this.name, removed });
    this.#disk = { ...disk, id, home, removed };
    this.#flags.clear();
    this.#unconfirmed.clear();
    for (const [replica, { drained }] of disk.drains) this.#flags.set(replica, drained);
    const process = { state, isServing: false, startedAtMs: this.#clock.nowMs };
    this.#process = process;
    this.#collaborators.schedule(this.#collaborators.chance() * SYNC_INTERVAL_MS, () => this.#sync(process));
  }

  kill(): void {
    this.#process = null;
    this.#calls = [];
    this.#inflight.clear();
  }

  /** Returns a function that undoes it. */
  loseDisk(): () => void {
    const before = this.#disk;
    this.#disk = emptyDisk();
    return () => {
      this.#disk = before;
    };
  }

  /** Stops in order, and tells the store so if it can be reached. */
  stop(): void {
    const process = this.#process;
    if (process === null || [...this.#inflight.values()].some((count) => count > 0)) return;
    this.kill();
    if (!this.isConnected) return;
    const { state } = reconcile(
      process.state,
      {
        kind: 'leaving',
        version: this.#clock.stampAfter(process.state.id),
        background: new Map(),
        restMs: 0,
      },
      this.#clock.nowMs,
    );
    this.#disk = { ...this.#disk, isKnown: false };
    this.link.send(() => this.#collaborators.store.writeFinal(toSnapshot(state, this.#clock.nowMs)));
  }

  /** The ids of a vanished gateway that an operator can forget. */
  vanishedAs(name: string): readonly string[] {
    const found = this.#process === null ? [] : findVanished(this.#process.state, name, this.#clock.nowMs);
    return typeof found === 'string' ? [] : found;
  }

  forget(ids: readonly string[]): void {
    this.#handle({ kind: 'removed', ids, version: this.#clock.stampAfter(''), restMs: 0 });
  }

  #sync(process: Process): void {
    if (this.#process !== process) return;
    const { store, nowMs } = this.#collaborators;
    const syncStartedAtMs = this.#clock.nowMs;
    const read = { snapshots: [] as readonly Snapshot[], heartbeats: [] as readonly Heartbeat[] };
    const steps = [
      () => {
        read.snapshots = store.readSnapshots();
      },
      () => {
        read.heartbeats = store.readHeartbeats(nowMs());
      },
    ];
    this.link.read(steps, (isInTime) => {
      if (this.#process !== process) return;
      if (isInTime) this.#applyRead(process, { syncStartedAtMs, ...read });
      else this.#endSync(process);
    });
  }

  #applyRead(
    process: Process,
    {
      syncStartedAtMs,
      snapshots,
      heartbeats,
    }: { syncStartedAtMs: number; snapshots: readonly Snapshot[]; heartbeats: readonly Heartbeat[] },
  ): void {
    const others = snapshots.filter(({ id }) => id !== process.state.id);
    const revisions = new Map(snapshots.map(({ id, revision }) => [id, revision]));
    const newId = this.#clock.stampAfter(process.state.id);
    this.#handle({ kind: 'read', syncStartedAtMs, revisions, snapshots: others, heartbeats, newId });
    if (isJoined(process.state)) {
      process.isServing = true;
      this.#disk = { ...this.#disk, isKnown: true };
    }
    this.#write(process, syncStartedAtMs);
  }

  #write(process: Process, syncStartedAtMs: number): void {
    const { state, heartbeat } = nextHeartbeat(process.state, new Map(this.#inflight), this.#clock.nowMs);
    process.state = state;
    const { revision, removed, publishedRevision } = state;
    const snapshot = publishedRevision === revision ? null : toSnapshot(state, this.#clock.nowMs);
    const { store, nowMs } = this.#collaborators;
    const step = () => store.write({ heartbeat, snapshot, removedIds: removed }, nowMs());
    this.link.write(step, (isInTime) => {
      if (this.#process !== process) return;
      if (isInTime) this.#handle({ kind: 'published', revision, syncStartedAtMs });
      this.#endSync(process);
    });
  }

  #endSync(process: Process): void {
    this.#handle({ kind: 'tick' });
    if (this.#disk.isKnown && mayServeAlone(process.state, process.startedAtMs, this.#clock.nowMs)) {
      process.isServing = true;
    }
    this.#collaborators.schedule(this.openCalls.length > 0 ? FAST_SYNC_MS : SYNC_INTERVAL_MS, () =>
      this.#sync(process),
    );
  }

  #handle(event: FleetEvent): void {
    const process = this.#process;
    if (process === null) return;
    const { state, effects } = reconcile(process.state, event, this.#clock.nowMs);
    process.state = state;
    for (const effect of effects) {
      if (effect.kind === 'persist') {
        const { id, members, removed } = state;
        this.#disk = { ...this.#disk, id, members, removed };
      } else if (effect.kind === 'apply') this.#apply(process, effect.replica, effect.drain);
    }
  }

  #apply(process: Process, replica: string, drain: DrainState): void {
    const { schedule, chance } = this.#collaborators;
    const isNew = process.isServing && drain.drained && this.#flags.get(replica) !== true;
    if (isNew) this.#unconfirmed.add(replica);
    this.#flags.set(replica, drain.drained);
    schedule(chance() * 100, () => {
      if (this.#process !== process || process.state.applying.get(replica) !== drain.version) return;
      this.#disk = { ...this.#disk, drains: new Map([...this.#disk.drains, [replica, drain]]) };
      schedule(chance() * 500, () => {
        if (this.#process !== process) return;
        if (process.state.applying.get(replica) === drain.version) this.#unconfirmed.delete(replica);
        this.#handle({ kind: 'applied', replica, version: drain.version });
      });
    });
  }
}
