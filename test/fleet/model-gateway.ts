import { beginFleet, composeBeat, type FleetState, toLedger } from '../../src/fleet/fleet-state.ts';
import { type FleetEvent, reconcile } from '../../src/fleet/reconcile.ts';
import type { Beat, Ledger } from '../../src/fleet/sheets.ts';
import {
  type FleetStanding,
  findVanished,
  isJoined,
  isOnItsOwn,
  standingOf,
} from '../../src/fleet/standing.ts';
import { ROUND_MS } from '../../src/fleet/timing.ts';
import type { DrainState } from '../../src/replicas/drains.ts';
import { nextStamp } from '../../src/replicas/stamp.ts';
import type { ModelStore } from './model-store.ts';

/** What a gateway gets from the world around it. */
export interface Surroundings {
  readonly store: ModelStore;
  /** True time. */
  readonly nowMs: () => number;
  readonly later: (afterMs: number, what: () => void) => void;
  /** A number from 0 up to and without 1. */
  readonly chance: () => number;
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

const NEVER: DrainState = { drained: false, since: null, reason: null, version: '' };

/**
 * One gateway of the model: the real reconciliation, and around it what src/fleet/fleet.ts and the workers do, with
 * every step taking its time.
 */
export class ModelGateway {
  readonly name: string;
  /** The connection to the store. Messages under way when it is cut may arrive all the same. */
  isCut = false;
  /** What is written may take long to arrive. */
  isSlow = false;
  /** It has lost the store with everybody else, and is back at this time. */
  backAtMs = 0;
  readonly #with: Surroundings;
  readonly #clock: { readonly rate: number; readonly wallOffsetMs: number };
  #disk = emptyDisk();
  #process: Process | null = null;
  readonly #flags = new Map<string, boolean>();
  /** Replicas that were drained so lately that a worker may have decided before. */
  readonly #decidedBefore = new Set<string>();
  readonly #inflight = new Map<string, number>();

  constructor(
    name: string,
    clock: { readonly rate: number; readonly wallOffsetMs: number },
    surroundings: Surroundings,
  ) {
    this.name = name;
    this.#clock = clock;
    this.#with = surroundings;
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
    return !this.isCut && !this.isSlow;
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
    return standingOf(this.#process.state, replica, this.inflightOf(replica), this.#nowMs());
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

  setDrained(replica: string, drained: boolean): void {
    const before = this.#process?.state.drains.get(replica) ?? NEVER;
    if (this.#process === null || before.drained === drained) return;
    const version = nextStamp(before.version, this.#wallMs(), this.#random());
    this.#take({ kind: 'changed', replica, drain: { drained, version, since: null, reason: null } });
  }

  start(): void {
    if (this.#process !== null) return;
    const disk = this.#disk;
    const id = nextStamp(disk.id ?? '', this.#wallMs(), this.#random());
    const removed = disk.id === null ? disk.removed : [...disk.removed, disk.id].sort();
    const state = beginFleet({ ...disk, id, name: this.name, removed });
    this.#disk = { ...disk, id, removed };
    this.#flags.clear();
    this.#decidedBefore.clear();
    for (const [replica, { drained }] of disk.drains) this.#flags.set(replica, drained);
    const process = { state, isServing: false, startedAtMs: this.#nowMs() };
    this.#process = process;
    this.#with.later(this.#with.chance() * ROUND_MS, () => this.#round(process));
  }

  kill(): void {
    this.#process = null;
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
    const { state } = reconcile(process.state, { kind: 'removed', ids: [process.state.id] }, this.#nowMs());
    this.#disk = { ...this.#disk, isKnown: false };
    this.#send(() => this.#with.store.writeLast(toLedger(state)));
  }

  /** The ids of a gateway that vanished, as an operator can have them forgotten. */
  vanishedAs(name: string): readonly string[] {
    const found = this.#process === null ? [] : findVanished(this.#process.state, name, this.#nowMs());
    return typeof found === 'string' ? [] : found;
  }

  forget(ids: readonly string[]): void {
    this.#take({ kind: 'removed', ids });
  }

  #round(process: Process): void {
    if (this.#process !== process) return;
    const askedAtMs = this.#nowMs();
    const { store, nowMs, later } = this.#with;
    const startedAtMs = nowMs();
    const isInTime = () => this.#process === process && nowMs() - startedAtMs < ROUND_MS;
    later(ROUND_MS, () => {
      if (this.#process !== process) return;
      this.#take({ kind: 'passed' });
      if (this.#disk.isKnown && isOnItsOwn(process.state, process.startedAtMs, this.#nowMs()))
        process.isServing = true;
      this.#round(process);
    });
    this.#send(() => {
      const ledgers = store.readLedgers();
      this.#send(() => {
        const beats = store.readBeats(nowMs());
        this.#send(() => {
          if (isInTime()) this.#hear(process, { askedAtMs, ledgers, beats }, isInTime);
        });
      });
    });
  }

  #hear(
    process: Process,
    { askedAtMs, ledgers, beats }: { askedAtMs: number; ledgers: readonly Ledger[]; beats: readonly Beat[] },
    isInTime: () => boolean,
  ): void {
    const others = ledgers.filter(({ id }) => id !== process.state.id);
    const revisions = new Map(ledgers.map(({ id, revision }) => [id, revision]));
    const freshId = nextStamp(process.state.id, this.#wallMs(), this.#random());
    this.#take({ kind: 'heard', askedAtMs, revisions, ledgers: others, beats, freshId });
    if (isJoined(process.state)) {
      process.isServing = true;
      this.#disk = { ...this.#disk, isKnown: true };
    }
    this.#write(process, isInTime);
  }

  #write(process: Process, isInTime: () => boolean): void {
    const { state, beat } = composeBeat(process.state, new Map(this.#inflight), this.#nowMs());
    process.state = state;
    const { revision, removed, pinnedRevision } = state;
    const ledger = pinnedRevision === revision ? null : toLedger(state);
    this.#send(
      () => {
        this.#with.store.write({ beat, ledger, gone: removed }, this.#with.nowMs());
        this.#send(() => {
          if (isInTime()) this.#take({ kind: 'pinned', revision });
        });
      },
      this.isSlow ? 15_000 : 40,
    );
  }

  /** Carries a message to the store or back: lost if the connection is cut when it leaves, and sometimes later. */
  #send(arrive: () => void, withinMs = 40): void {
    if (this.isCut || this.#with.nowMs() < this.backAtMs) return;
    this.#with.later(this.#with.chance() * withinMs, () => {
      if (!this.isCut || this.#with.chance() < 0.5) arrive();
      else this.#with.later(this.#with.chance() * 20_000, arrive); // it lay somewhere on the way
    });
  }

  #take(event: FleetEvent): void {
    const process = this.#process;
    if (process === null) return;
    const { state, effects } = reconcile(process.state, event, this.#nowMs());
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

  /** This gateway's monotonic clock. */
  #nowMs(): number {
    return 1_000 + this.#with.nowMs() * this.#clock.rate;
  }

  #wallMs(): number {
    return 1_800_000_000_000 + this.#clock.wallOffsetMs + Math.floor(this.#with.nowMs());
  }

  #random(): string {
    return Math.floor(this.#with.chance() * 2 ** 48)
      .toString(16)
      .padStart(12, '0');
  }
}
