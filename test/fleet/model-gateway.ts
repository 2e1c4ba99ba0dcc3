import { beginFleet, composeBeat, type FleetState, toLedger } from '../../src/fleet/fleet-state.ts';
import { type FleetEvent, reconcile } from '../../src/fleet/reconcile.ts';
import type { Beat, Ledger } from '../../src/fleet/sheets.ts';
import { type Call, type Spread, spreadOf } from '../../src/fleet/spread.ts';
import {
  type FleetStanding,
  findVanished,
  isJoined,
  isOnItsOwn,
  standingOf,
} from '../../src/fleet/standing.ts';
import { ROUND_MS } from '../../src/fleet/timing.ts';
import { type DrainState, NEVER_DRAINED } from '../../src/replicas/control/drains.ts';
import type { ModelClock } from './model-clock.ts';
import { type LinkSurroundings, ModelLink } from './model-link.ts';
import type { ModelStore } from './model-store.ts';

/** What a gateway gets from the world around it. */
interface Surroundings extends LinkSurroundings {
  readonly store: ModelStore;
}

/** What a gateway's state_dir holds. */
interface Disk {
  id: string | null;
  members: ReadonlyMap<string, string>;
  removed: readonly string[];
  /** Whether somebody may know the process of this id. */
  isKnown: boolean;
  drains: ReadonlyMap<string, DrainState>;
}

/** A gateway that runs. */
interface Process {
  state: FleetState;
  isServing: boolean;
  readonly startedAtMs: number;
}

const emptyDisk = (): Disk => ({
  id: null,
  members: new Map(),
  removed: [],
  isKnown: false,
  drains: new Map(),
});

/** A call, and the version that it made. */
export interface ModelCall extends Call {
  readonly version: string;
}

/** Rounds follow each other at this distance while somebody waits for an answer. */
const BRISK_MS = 100;

/** For how long the model looks at what could be answered to a call: longer than any answer takes. */
const CALL_OPEN_MS = 8_000;

/**
 * One gateway of the model: the real reconciliation, and around it what src/fleet/fleet.ts and the workers do, with
 * every step taking its time.
 */
export class ModelGateway {
  readonly name: string;
  /** Its way to the store. */
  readonly link: ModelLink;
  readonly #with: Surroundings;
  readonly #clock: ModelClock;
  #disk = emptyDisk();
  #process: Process | null = null;
  readonly #flags = new Map<string, boolean>();
  /** Replicas that were drained so lately that a worker may have decided before. */
  readonly #decidedBefore = new Set<string>();
  readonly #inflight = new Map<string, number>();
  #calls: readonly ModelCall[] = [];

  constructor(name: string, clock: ModelClock, surroundings: Surroundings) {
    this.name = name;
    this.#clock = clock;
    this.#with = surroundings;
    this.link = new ModelLink(surroundings);
  }

  get isRunning(): boolean {
    return this.#process !== null;
  }

  get isServing(): boolean {
    return this.#process?.isServing === true;
  }

  /** Whether it sends requests now, or will when it starts and cannot reach the store. */
  get canServe(): boolean {
    return this.isServing || this.#disk.isKnown;
  }

  get isConnected(): boolean {
    return this.link.isWhole;
  }

  /** Whose memory is lost with the disk. */
  get remembers(): readonly string[] {
    return [...(this.#process?.state.members ?? this.#disk.members).keys()];
  }

  /** The id under which the others may know it. */
  get id(): string | null {
    return this.#process?.state.id ?? this.#disk.id;
  }

  get drains(): ReadonlyMap<string, DrainState> {
    return this.#process?.state.drains ?? new Map();
  }

  standingOf(replica: string): FleetStanding | null {
    if (this.#process === null) return null;
    return standingOf(this.#process.state, replica, this.inflightOf(replica), this.#clock.nowMs);
  }

  inflightOf(replica: string): number {
    return this.#inflight.get(replica) ?? 0;
  }

  /** Whether a request could be sent: the replica is not drained, or a worker has not gone by since. */
  canBegin(replica: string): boolean {
    return this.isServing && (this.#flags.get(replica) !== true || this.#decidedBefore.has(replica));
  }

  begin(replica: string): void {
    if (this.canBegin(replica)) this.#inflight.set(replica, this.inflightOf(replica) + 1);
  }

  end(replica: string): void {
    this.#inflight.set(replica, Math.max(0, this.inflightOf(replica) - 1));
  }

  /** Returns whether there was anybody to ask. */
  setDrained(replica: string, drained: boolean): boolean {
    if (this.#process === null) return false;
    const before = this.#process.state.drains.get(replica) ?? NEVER_DRAINED;
    const version = this.#clock.stampAfter(before.version);
    this.#calls = [...this.openCalls, { replica, drained, version, calledAtMs: this.#clock.nowMs }];
    this.#take({ kind: 'changed', replica, drain: { drained, version, since: null, reason: null } });
    return true;
  }

  /** The calls that may not have been answered yet. */
  get openCalls(): readonly ModelCall[] {
    return this.#calls.filter(({ calledAtMs }) => this.#clock.nowMs - calledAtMs < CALL_OPEN_MS);
  }

  /** What would be answered to a call at this moment. */
  answerTo(call: Call): Spread | null {
    return this.#process === null ? null : spreadOf(this.#process.state, call, this.#clock.nowMs);
  }

  start(): void {
    if (this.#process !== null) return;
    const disk = this.#disk;
    const id = this.#clock.stampAfter(disk.id ?? '');
    const removed = disk.id === null ? disk.removed : [...disk.removed, disk.id].sort();
    const state = beginFleet({ ...disk, id, name: this.name, removed });
    this.#disk = { ...disk, id, removed };
    this.#flags.clear();
    this.#decidedBefore.clear();
    for (const [replica, { drained }] of disk.drains) this.#flags.set(replica, drained);
    const process = { state, isServing: false, startedAtMs: this.#clock.nowMs };
    this.#process = process;
    this.#with.later(this.#with.chance() * ROUND_MS, () => this.#round(process));
  }

  kill(): void {
    this.#process = null;
    this.#calls = [];
    this.#inflight.clear();
  }

  /** Returns the way back. */
  loseDisk(): () => void {
    const before = this.#disk;
    this.#disk = emptyDisk();
    return () => {
      this.#disk = before;
    };
  }

  /** Stops as it should: says so, if the store can be told. */
  stop(): void {
    const process = this.#process;
    if (process === null || [...this.#inflight.values()].some((count) => count > 0)) return;
    this.kill();
    if (!this.isConnected) return;
    const { state } = reconcile(
      process.state,
      { kind: 'removed', ids: [process.state.id] },
      this.#clock.nowMs,
    );
    this.#disk = { ...this.#disk, isKnown: false };
    this.link.send(() => this.#with.store.writeLast(toLedger(state)));
  }

  /** The ids of a gateway that vanished, as an operator can have them forgotten. */
  vanishedAs(name: string): readonly string[] {
    const found = this.#process === null ? [] : findVanished(this.#process.state, name, this.#clock.nowMs);
    return typeof found === 'string' ? [] : found;
  }

  forget(ids: readonly string[]): void {
    this.#take({ kind: 'removed', ids });
  }

  #round(process: Process): void {
    if (this.#process !== process) return;
    const { store, nowMs } = this.#with;
    const askedAtMs = this.#clock.nowMs;
    const read = { ledgers: [] as readonly Ledger[], beats: [] as readonly Beat[] };
    const steps = [
      () => {
        read.ledgers = store.readLedgers();
      },
      () => {
        read.beats = store.readBeats(nowMs());
      },
    ];
    this.link.read(steps, (isInTime) => {
      if (this.#process !== process) return;
      if (isInTime) this.#hear(process, { askedAtMs, ...read });
      else this.#endRound(process);
    });
  }

  #hear(
    process: Process,
    { askedAtMs, ledgers, beats }: { askedAtMs: number; ledgers: readonly Ledger[]; beats: readonly Beat[] },
  ): void {
    const others = ledgers.filter(({ id }) => id !== process.state.id);
    const revisions = new Map(ledgers.map(({ id, revision }) => [id, revision]));
    const freshId = this.#clock.stampAfter(process.state.id);
    this.#take({ kind: 'heard', askedAtMs, revisions, ledgers: others, beats, freshId });
    if (isJoined(process.state)) {
      process.isServing = true;
      this.#disk = { ...this.#disk, isKnown: true };
    }
    this.#write(process, askedAtMs);
  }

  #write(process: Process, askedAtMs: number): void {
    const { state, beat } = composeBeat(process.state, new Map(this.#inflight), this.#clock.nowMs);
    process.state = state;
    const { revision, removed, pinnedRevision } = state;
    const ledger = pinnedRevision === revision ? null : toLedger(state);
    const { store, nowMs } = this.#with;
    const step = () => store.write({ beat, ledger, gone: removed }, nowMs());
    this.link.write(step, (isInTime) => {
      if (this.#process !== process) return;
      if (isInTime) this.#take({ kind: 'pinned', revision, askedAtMs });
      this.#endRound(process);
    });
  }

  #endRound(process: Process): void {
    this.#take({ kind: 'passed' });
    if (this.#disk.isKnown && isOnItsOwn(process.state, process.startedAtMs, this.#clock.nowMs)) {
      process.isServing = true;
    }
    this.#with.later(this.openCalls.length > 0 ? BRISK_MS : ROUND_MS, () => this.#round(process));
  }

  #take(event: FleetEvent): void {
    const process = this.#process;
    if (process === null) return;
    const { state, effects } = reconcile(process.state, event, this.#clock.nowMs);
    process.state = state;
    for (const effect of effects) {
      if (effect.kind === 'remember') {
        const { id, members, removed } = state;
        this.#disk = { ...this.#disk, id, members, removed };
      } else this.#enforce(process, effect.replica, effect.drain);
    }
  }

  #enforce(process: Process, replica: string, drain: DrainState): void {
    const { later, chance } = this.#with;
    const isNew = process.isServing && drain.drained && this.#flags.get(replica) !== true;
    if (isNew) this.#decidedBefore.add(replica);
    this.#flags.set(replica, drain.drained);
    later(chance() * 100, () => {
      if (this.#process !== process || process.state.underway.get(replica) !== drain.version) return;
      this.#disk = { ...this.#disk, drains: new Map([...this.#disk.drains, [replica, drain]]) };
      later(chance() * 500, () => {
        if (this.#process !== process) return;
        if (process.state.underway.get(replica) === drain.version) this.#decidedBefore.delete(replica);
        this.#take({ kind: 'enforced', replica, version: drain.version });
      });
    });
  }
}
