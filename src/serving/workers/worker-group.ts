import { url as inspectorUrl } from 'node:inspector';
import type { RequestRecord } from '#otel/encode/request-record.ts';
import { type PackedRecords, unpack } from '#otel/queue/worker-outlet.ts';
import type { Telemetry } from '#otel/start-telemetry.ts';
import { clearLimit } from '../../http/shared-limit.ts';
import type { Topology } from '../../replicas/control/topology.ts';
import { SharedState } from '../../replicas/shared/shared-state.ts';
import {
  LAST_WORDS_MS,
  type ListenAddress,
  type Serving,
  type ServingLog,
  type ServingSettings,
} from '../serving.ts';
import { findFreePort } from './free-port.ts';
import type { LogLevel, Order } from './messages.ts';
import { LONG_LIFE_MS, restartDelayMs } from './restart-delay.ts';
import { HangWatch, LOOK_EVERY_MS } from './watchdog.ts';
import { WorkerThread } from './worker-thread.ts';

/** How long a worker that is asked for nothing but an answer has for it. */
const ANSWER_MS = 5_000;
/** How long somebody who wants to see figures waits for those of a worker that is busy. */
const FIGURES_MS = 1_000;

const LOG_LEVELS: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/** What the group is told: the settings of each worker. */
export type WorkerGroupSettings = Omit<ServingSettings, 'worker'> & { readonly workerCount: number };

/** Whom the group works with. A pino logger fits as `log`. */
export interface WorkerGroupCollaborators {
  readonly telemetry: Pick<Telemetry, 'ledger' | 'receive' | 'workerEnded'>;
  readonly log: ServingLog & { isLevelEnabled(level: LogLevel): boolean };
  /** Called with every finished record, after it entered the queue. */
  readonly onRecord: (record: Readonly<RequestRecord>) => void;
  /** Called when a worker has ended that was not asked to. */
  readonly onWorkerEnd: (end: WorkerEnd) => void;
}

/** How a worker ended that was not asked to: by itself, or because it showed no sign of life any more. */
export type WorkerEnd = 'died' | 'hung';

/** One worker, in whatever thread it is at the moment. */
interface Place {
  readonly worker: number;
  /** Null between the end of a thread and the start of the next. */
  thread: WorkerThread | null;
  startedAtMs: number;
  /** Threads in a row that did not live long. */
  shortLives: number;
  /** Whether its thread is being ended because it hangs. */
  isHung: boolean;
  restart: NodeJS.Timeout | undefined;
}

/**
 * A data plane of several workers, each in a thread of its own with its own listener on the same port: the system
 * spreads connections over them. One that ends is replaced, and one that hangs is ended; what it had in flight is not
 * in flight any more, and its records are counted as lost.
 */
export class WorkerGroup implements Serving {
  #settings: WorkerGroupSettings;
  readonly #with: WorkerGroupCollaborators;
  readonly #shared: SharedState;
  #logLevels: readonly LogLevel[];
  readonly #places: readonly Place[];
  readonly #beats: Int32Array;
  readonly #watch: HangWatch;
  readonly #looking: NodeJS.Timeout;
  #topology: Topology | null = null;
  #address: ListenAddress | null = null;
  #state: 'starting' | 'serving' | 'closing' = 'starting';
  /** Requests that ended with their worker while the group was closing. */
  #lostInClosing = 0;

  constructor({ workerCount, ...settings }: WorkerGroupSettings, collaborators: WorkerGroupCollaborators) {
    this.#settings = { workerCount, ...settings };
    this.#with = collaborators;
    this.#shared = new SharedState(settings.memory.replicas);
    this.#logLevels = this.#enabledLevels();
    this.#beats = new Int32Array(new SharedArrayBuffer(workerCount * Int32Array.BYTES_PER_ELEMENT));
    this.#watch = new HangWatch(this.#beats);
    this.#looking = setInterval(() => this.#endThoseThatHang(), LOOK_EVERY_MS).unref();
    this.#places = Array.from({ length: workerCount }, (_, worker) => this.#createPlace(worker));
    for (const place of this.#places) this.#startThread(place);
  }

  /** A plain bind comes first, so that a port that somebody else has is an error. */
  async listen(address: ListenAddress): Promise<number> {
    const port = await findFreePort(address);
    this.#address = { ...address, port, reusePort: true };
    await Promise.all(this.#places.map((place) => this.#listenIn(place)));
    this.#state = 'serving';
    return port;
  }

  async apply(topology: Topology): Promise<void> {
    this.#topology = topology;
    await this.#tellAll({ kind: 'apply', topology });
  }

  async configure(config: ServingSettings['config']): Promise<void> {
    this.#settings = { ...this.#settings, config };
    this.#logLevels = this.#enabledLevels();
    await this.#tellAll({ kind: 'configure', config, logLevels: this.#logLevels });
  }

  async confirm(): Promise<readonly number[]> {
    const answers = this.#places.map(async ({ worker, thread }) => {
      if (thread === null) return null;
      // One that ends meanwhile writes nothing any more.
      const answered = thread.call({ kind: 'confirm' }).catch(() => 0);
      return (await within(ANSWER_MS, answered)) === null ? worker + 1 : null;
    });
    return (await Promise.all(answers)).filter((worker) => worker !== null);
  }

  /** What a worker tells before its answer has come when that comes. One that is busy for long is not waited for. */
  async settleRecords(): Promise<void> {
    await Promise.all(
      this.#threads().map((thread) => answerOf(thread, { kind: 'settleRecords' }, FIGURES_MS)),
    );
  }

  startClosing(): void {
    this.#stopReplacing();
    for (const thread of this.#threads()) thread.call({ kind: 'startClosing' }).catch(() => undefined);
  }

  async finish(graceMs: number): Promise<number> {
    this.#stopReplacing();
    const cuts = this.#threads().map(async (thread) => {
      const cut = await answerOf(thread, { kind: 'finish', graceMs }, graceMs + LAST_WORDS_MS + ANSWER_MS);
      // What a worker that does not answer had in flight is counted when it has ended.
      if (cut === null) await thread.terminate();
      return cut ?? 0;
    });
    const sum = (await Promise.all(cuts)).reduce((total, cut) => total + cut, 0);
    return sum + this.#lostInClosing;
  }

  async close(): Promise<void> {
    this.#stopReplacing();
    await Promise.all(
      this.#threads().map(async (thread) => {
        await answerOf(thread, { kind: 'close' }, ANSWER_MS);
        await thread.terminate();
      }),
    );
  }

  /** From now on what ends stays ended. */
  #stopReplacing(): void {
    this.#state = 'closing';
    clearInterval(this.#looking);
    for (const { restart } of this.#places) clearTimeout(restart);
  }

  /** Ending a thread stops a loop as well as a wait; its successor takes over from there. */
  #endThoseThatHang(): void {
    // A breakpoint is no hang.
    if (inspectorUrl() !== undefined) return;
    for (const place of this.#places) {
      const { worker, thread, isHung } = place;
      if (thread === null || isHung || !this.#watch.look(worker)) continue;
      place.isHung = true;
      this.#with.log.error({ worker: worker + 1 }, 'worker hangs');
      void thread.terminate();
    }
  }

  #createPlace(worker: number): Place {
    return { worker, thread: null, startedAtMs: 0, shortLives: 0, isHung: false, restart: undefined };
  }

  #threads(): readonly WorkerThread[] {
    return this.#places.flatMap(({ thread }) => thread ?? []);
  }

  async #tellAll(order: Order): Promise<void> {
    await Promise.all(
      this.#threads().map(async (thread) => {
        // A worker that goes by something older would serve what is gone; the next one begins with this.
        if ((await thread.call(order).catch(() => null)) === null) await thread.terminate();
      }),
    );
  }

  #enabledLevels(): readonly LogLevel[] {
    return LOG_LEVELS.filter((level) => this.#with.log.isLevelEnabled(level));
  }

  #startThread(place: Place): WorkerThread {
    const { worker } = place;
    const { workerCount: _, ...settings } = this.#settings;
    const { telemetry, log } = this.#with;
    const thread = new WorkerThread(
      {
        settings: { ...settings, worker },
        ledger: telemetry.ledger,
        beats: this.#beats,
        logLevels: this.#logLevels,
        topology: this.#topology,
      },
      {
        onRecords: (records) => this.#receive(worker, records),
        onLog: (level, fields, message) => log[level]({ worker: worker + 1, ...fields }, message),
        onEnd: (error) => this.#ended(place, error),
      },
    );
    this.#watch.begin(worker);
    place.thread = thread;
    place.isHung = false;
    place.startedAtMs = performance.now();
    return thread;
  }

  async #listenIn({ thread }: Place): Promise<void> {
    if (thread === null || this.#address === null) throw new Error('a worker ended before it could listen');
    await thread.call({ kind: 'listen', address: this.#address });
  }

  #receive(worker: number, packed: PackedRecords): void {
    const { telemetry, onRecord } = this.#with;
    const { records, ...lines } = unpack(packed);
    telemetry.receive(worker, lines);
    for (const record of records) onRecord(record);
  }

  /** Nothing of the thread comes any more: what it had taken is free, and another takes its place. */
  #ended(place: Place, error: unknown): void {
    const { worker } = place;
    const { memory } = this.#settings;
    place.thread = null;
    const lost = this.#with.telemetry.workerEnded(worker);
    this.#shared.clearWorker(worker);
    clearLimit(memory.buffered, worker);
    clearLimit(memory.connections, worker);
    if (this.#state === 'closing') {
      this.#lostInClosing += lost;
      return;
    }
    this.#with.onWorkerEnd(place.isHung ? 'hung' : 'died');
    const isShortLife = performance.now() - place.startedAtMs < LONG_LIFE_MS;
    place.shortLives = isShortLife ? place.shortLives + 1 : 0;
    const delayMs = restartDelayMs(place.shortLives);
    this.#with.log.error({ worker: worker + 1, err: error, lost, restart_ms: delayMs }, 'worker ended');
    if (this.#state === 'serving') place.restart = setTimeout(() => void this.#restart(place), delayMs);
  }

  async #restart(place: Place): Promise<void> {
    const thread = this.#startThread(place);
    try {
      await this.#listenIn(place);
      this.#with.log.info({ worker: place.worker + 1 }, 'worker replaced');
    } catch (error) {
      this.#with.log.error({ worker: place.worker + 1, err: error }, 'worker cannot listen');
      await thread.terminate();
    }
  }
}

/** A worker's answer, or null when the worker fails, ends before, or takes longer. */
function answerOf(thread: WorkerThread, order: Order, ms: number): Promise<number | null> {
  const answer: Promise<number | null> = thread.call(order).catch(() => null);
  return within(ms, answer);
}

/** What a promise resolves with, or null when that takes longer. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
