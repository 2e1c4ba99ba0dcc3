import type { LimitRows } from '#access/limits';
import { atMostOncePerMinute } from '#base';
import type { Log } from '#otel/base';
import type { BackgroundResponse, ResponseFields } from '#proxy';
import { GpuShare } from '#replicas/gpu-time';
import {
  type BackgroundCounts,
  type BackgroundServer,
  type RegisteredReplica,
  type ReplicaRegistry,
  serverKeyOf,
} from '#replicas/registry';
import type { SharedState } from '#replicas/shared';
import type { StateFile } from '#state-dir';
import { askForResponse, type ResponseState } from './ask-for-response.ts';
import { printBackground, type StoredBackground, type StoredResponse } from './background-file.ts';
import { BackgroundStore } from './background-store.ts';
import { type BackgroundEnd, decideFollow, type FollowStep } from './decide-follow.ts';
import { makeRecord, type RecordMaking, withGpuShare } from './make-record.ts';
import { Unfollowed } from './unfollowed.ts';

/** What the work in the background is followed with. */
export interface BackgroundCollaborators extends Pick<RecordMaking, 'endParkedSpan' | 'currency'> {
  readonly registry: Pick<ReplicaRegistry, 'all'>;
  readonly counts: BackgroundCounts;
  readonly shared: SharedState;
  readonly limitRows: Pick<LimitRows, 'nameOf' | 'useTokens'>;
  readonly file: StateFile<StoredBackground>;
  /** `limits.background`, in effect. */
  readonly limitMs: () => number;
  readonly log: Log;
}

/** How many responses a gateway follows at one time. */
export const MAX_FOLLOWED_RESPONSES = 4_096;
/** For all their records together, as JSON. */
const MAX_FOLLOWED_BYTES = 32 * 1024 ** 2;
/** How soon a server is asked again that did not answer, or looked for that is not configured. */
const AWAY_MS = 2_000;

/** A response that is followed. */
interface Follow {
  readonly id: string;
  /** A `StoredResponse` as JSON: in memory as on disk, so that many take little. */
  text: string;
  /** When its request arrived: monotonic, and as its record has it. */
  readonly begunMs: number;
  readonly sinceEpochMs: number;
  /** Null: the replica has no `gpu_count`, or is not configured yet. */
  gpuShare: GpuShare | null;
  isKnown: boolean;
  misses: number;
  /** When it is looked at next: monotonic. */
  dueMs: number;
}

/** What one server goes on with. */
interface Server extends BackgroundServer {
  readonly follows: Set<Follow>;
  /** Those that are over, and still in the file. */
  readonly ending: Set<Follow>;
  readonly unfollowed: Unfollowed;
  timer: NodeJS.Timeout | undefined;
  isBusy: boolean;
}

/**
 * The responses that replicas go on with after their answers (`background`), in the main thread: asks the replicas how far
 * they are, one after the other for each replica, until each is over or older than the limit, and makes their records.
 */
export class BackgroundWork {
  readonly #collaborators: BackgroundCollaborators;
  readonly #store: BackgroundStore;
  readonly #servers = new Map<string, Server>();
  readonly #onTooMany: () => void;
  #followedCount = 0;
  #bytes = 0;
  #isClosed = false;

  constructor(collaborators: BackgroundCollaborators) {
    this.#collaborators = collaborators;
    const { file, log } = collaborators;
    this.#store = new BackgroundStore(file, () => this.#print());
    this.#onTooMany = atMostOncePerMinute(() =>
      log.warn(
        { limit: MAX_FOLLOWED_RESPONSES },
        'too many responses in the background: further ones are not followed, and count until limits.background is over',
      ),
    );
  }

  /** Goes on with what an earlier run followed. Rejects with the system's error. */
  async restore(): Promise<void> {
    const { responses, unfollowed } = await this.#store.read();
    const [nowMs, nowEpochMs] = [performance.now(), Date.now()];
    for (const response of responses) {
      const ageMs = Math.max(0, nowEpochMs - response.span.startedEpochMs);
      const server = this.#serverOf({ name: response.replica, url: response.url });
      this.#add(server, response, { begunMs: nowMs - ageMs, isKnown: false });
    }
    for (const { replica, url, count, untilEpochMs } of unfollowed) {
      const limitMs = this.#collaborators.limitMs();
      const restMs = Math.min(limitMs, Math.max(0, untilEpochMs - nowEpochMs));
      this.#serverOf({ name: replica, url }).unfollowed.add(nowMs + restMs, limitMs, count);
    }
    for (const server of this.#servers.values()) this.#update(server);
    if (responses.length > 0) {
      this.#collaborators.log.info(
        { responses: responses.length },
        'following the responses in the background of the earlier run',
      );
    }
  }

  /** Takes over a response from the thread that served its request. */
  follow({ worker, slot, id, limitRows: rows, ...held }: BackgroundResponse): void {
    const { registry, shared, limitRows } = this.#collaborators;
    // Its slot is not another's before this has been taken over.
    const replica = registry.all.find((each) => each.slot === slot);
    const { name, url } = replica?.config ?? { name: held.record.replica ?? '', url: '' };
    const server = this.#serverOf({ name, url });
    const limits = rows.flatMap((row) => limitRows.nameOf(row) ?? []);
    const stored = { ...held, replica: name, url, limits };
    const begunMs = performance.now() - held.record.e2e_ms;
    if (id === null || this.#isClosed || !this.#add(server, { ...stored, id }, { begunMs, isKnown: true })) {
      makeRecord(this.#collaborators, stored, notFollowed(held.record.e2e_ms));
      const limitMs = this.#collaborators.limitMs();
      server.unfollowed.add(begunMs + limitMs, limitMs);
      this.#store.changed();
    }
    this.#update(server);
    // Last: until then it counts as handed over.
    shared.noteTakenOver(worker, slot);
  }

  /** The thread of a worker has ended. What it counted and did not hand over is not known any more. */
  workerEnded(worker: number): void {
    const { registry, shared, limitMs } = this.#collaborators;
    for (const [slot, count] of shared.leftOverOf(worker)) {
      const replica = registry.all.find((each) => each.slot === slot);
      if (replica !== undefined) {
        const server = this.#serverOf(replica.config);
        server.unfollowed.add(performance.now() + limitMs(), limitMs(), count);
        this.#update(server);
        this.#store.changed();
      }
      for (let taken = 0; taken < count; taken++) shared.noteTakenOver(worker, slot);
    }
  }

  /**
   * Ceases to ask. What is followed is stored for the next start; if that is not possible, its records are made with what
   * is known.
   */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    const servers = [...this.#servers.values()];
    for (const { timer } of servers) clearTimeout(timer);
    const open = servers.flatMap(({ follows }) => [...follows]);
    for (const follow of open) {
      const stored: StoredResponse = JSON.parse(follow.text);
      const record = withGpuShare(stored.record, endShare(follow), this.#collaborators.currency);
      follow.text = JSON.stringify({ ...stored, record });
      this.#store.changed();
    }
    if (await this.#store.close()) return;
    for (const { text, begunMs } of open)
      makeRecord(this.#collaborators, JSON.parse(text), notFollowed(performance.now() - begunMs));
  }

  /** Begins to follow a response. Returns false if there are too many. */
  #add(
    server: Server,
    stored: StoredResponse,
    { begunMs, isKnown }: Pick<Follow, 'begunMs' | 'isKnown'>,
  ): boolean {
    const text = JSON.stringify(stored);
    if (this.#followedCount >= MAX_FOLLOWED_RESPONSES || this.#bytes + text.length > MAX_FOLLOWED_BYTES) {
      this.#onTooMany();
      return false;
    }
    this.#followedCount += 1;
    this.#bytes += text.length;
    const step = this.#decide({ begunMs, misses: 0 }, null);
    const dueMs = isKnown && step.kind === 'ask_again' ? performance.now() + step.inMs : 0;
    const sinceEpochMs = stored.span.startedEpochMs;
    const follow = { id: stored.id, text, begunMs, sinceEpochMs, gpuShare: null, isKnown, misses: 0, dueMs };
    server.follows.add(follow);
    const replica = this.#replicaOf(server);
    if (replica !== undefined) this.#beginShare(follow, replica);
    this.#store.changed();
    return true;
  }

  #decide({ begunMs, misses }: Pick<Follow, 'begunMs' | 'misses'>, state: ResponseState | null): FollowStep {
    const ageMs = performance.now() - begunMs;
    const limitMs = this.#collaborators.limitMs();
    return decideFollow({ ageMs, limitMs, misses, state: state?.kind ?? null });
  }

  /** Looks at those responses of a server that are due, one after the other. */
  async #lookAt(server: Server): Promise<void> {
    server.isBusy = true;
    const gone = { lost: 0, over_limit: server.unfollowed.expire(performance.now()) };
    for (const follow of [...server.follows].sort((a, b) => a.dueMs - b.dueMs)) {
      if (follow.dueMs > performance.now()) break;
      const isAway = await this.#lookAtOne(server, follow, gone);
      if (this.#isClosed) return;
      this.#count(server);
      if (isAway) break;
    }
    server.isBusy = false;
    this.#warnOf(server, gone);
    this.#update(server);
  }

  /** Looks at one response. Returns whether its server does not answer: then the others need not be asked now. */
  async #lookAtOne(
    server: Server,
    follow: Follow,
    gone: { lost: number; over_limit: number },
  ): Promise<boolean> {
    const replica = this.#replicaOf(server);
    if (replica !== undefined) this.#beginShare(follow, replica);
    const isOver = this.#decide(follow, null).kind === 'end';
    const state = replica === undefined || isOver ? null : await askForResponse(replica, follow.id);
    if (this.#isClosed) return false;
    follow.misses = state?.kind === 'missing' ? follow.misses + 1 : 0;
    const step = this.#decide(follow, state);
    if (step.kind === 'end') {
      if (step.end === 'lost' || step.end === 'over_limit') gone[step.end] += 1;
      this.#end(server, follow, step.end, state?.kind === 'ended' ? state.fields : {});
      return false;
    }
    follow.isKnown = step.isKnown;
    follow.dueMs = performance.now() + step.inMs;
    if (state !== null && state.kind !== 'unreachable') return false;
    waitForServer(server, performance.now() + Math.min(AWAY_MS, step.inMs));
    return true;
  }

  #warnOf(
    { name }: Server,
    { lost, over_limit }: { readonly lost: number; readonly over_limit: number },
  ): void {
    const { log } = this.#collaborators;
    if (lost > 0)
      log.warn(
        { replica: name, responses: lost },
        'the replica has no such responses in the background any more: it restarted, or they were deleted',
      );
    if (over_limit > 0)
      log.warn(
        { replica: name, responses: over_limit },
        'responses in the background are older than limits.background: the replica may still go on with them',
      );
  }

  #end(server: Server, follow: Follow, end: BackgroundEnd, fields: ResponseFields): void {
    server.follows.delete(follow);
    server.ending.add(follow);
    const ended = { end, ageMs: performance.now() - follow.begunMs, gpuShare: endShare(follow), fields };
    this.#store.changed();
    // While it is in the file, a kill would have it followed and recorded once more.
    void this.#store.untilStored().then(() => {
      makeRecord(this.#collaborators, JSON.parse(follow.text), ended);
      server.ending.delete(follow);
      this.#followedCount -= 1;
      this.#bytes -= follow.text.length;
      this.#update(server);
    });
  }

  #count(server: Server): void {
    const { follows, ending, unfollowed } = server;
    const { counts, limitMs } = this.#collaborators;
    const limit = limitMs();
    let running = 0;
    let untilMs = unfollowed.lastMs ?? 0;
    let firstEpochMs = Number.POSITIVE_INFINITY;
    for (const { sinceEpochMs } of ending) firstEpochMs = Math.min(firstEpochMs, sinceEpochMs);
    for (const { isKnown, begunMs, sinceEpochMs } of follows) {
      if (isKnown) running += 1;
      firstEpochMs = Math.min(firstEpochMs, sinceEpochMs);
      untilMs = Math.max(untilMs, begunMs + limit);
    }
    const unknown = follows.size - running + unfollowed.count;
    counts.set(server, { running, unknown }, firstEpochMs, untilMs);
  }

  /** Sets the counts of a server, and when it is looked at next. */
  #update(server: Server): void {
    const { follows, ending, unfollowed } = server;
    this.#count(server);
    clearTimeout(server.timer);
    if (this.#isClosed || server.isBusy) return;
    let dueMs = unfollowed.nextMs ?? Infinity;
    for (const follow of follows) dueMs = Math.min(dueMs, follow.dueMs);
    if (dueMs === Infinity) {
      if (ending.size === 0) this.#servers.delete(serverKeyOf(server));
      return;
    }
    const inMs = Math.max(0, dueMs - performance.now());
    server.timer = setTimeout(() => void this.#lookAt(server), inMs).unref();
  }

  #serverOf({ name, url }: BackgroundServer): Server {
    const key = serverKeyOf({ name, url });
    const known = this.#servers.get(key);
    if (known !== undefined) return known;
    const server = {
      name,
      url,
      follows: new Set<Follow>(),
      ending: new Set<Follow>(),
      unfollowed: new Unfollowed(),
      timer: undefined,
      isBusy: false,
    };
    this.#servers.set(key, server);
    return server;
  }

  /** Undefined: it is not configured, or not resolved yet. */
  #replicaOf({ name, url }: BackgroundServer): RegisteredReplica | undefined {
    return this.#collaborators.registry.all.find(({ config }) => config.name === name && config.url === url);
  }

  #beginShare(follow: Follow, replica: RegisteredReplica): void {
    if (follow.gpuShare !== null || !replica.config.gpuCount) return;
    const { gpuTimes, memory } = this.#collaborators.shared;
    // The writer after the workers: this thread.
    follow.gpuShare = new GpuShare(gpuTimes, memory.workerCount, replica.slot);
    follow.gpuShare.claim();
  }

  #print(): string {
    const servers = [...this.#servers.values()];
    const toEpochMs = (ms: number) => Date.now() + ms - performance.now();
    return printBackground(
      servers.flatMap(({ follows }) => [...follows].map(({ text }) => text)),
      servers.flatMap(({ name: replica, url, unfollowed }) =>
        unfollowed.parts.map(({ count, untilMs }) => ({
          replica,
          url,
          count,
          untilEpochMs: toEpochMs(untilMs),
        })),
      ),
    );
  }
}

/** None of the responses of a server is known to go on, and none is looked at before then. */
function waitForServer({ follows }: Server, untilMs: number): void {
  for (const follow of follows) {
    follow.isKnown = false;
    follow.dueMs = Math.max(follow.dueMs, untilMs);
  }
}

/** How a response ends whose end nobody sees. */
const notFollowed = (ageMs: number) => ({ end: 'not_followed', ageMs, gpuShare: null, fields: {} }) as const;

/** Ends a share and returns it; null if there is none. */
function endShare({ gpuShare }: Follow): GpuShare | null {
  gpuShare?.end();
  return gpuShare;
}
