import type { Log } from '#otel/base';
import type { ListenOptions } from '../calls.ts';
import type { Watchdog } from './watchdog.ts';
import type { WorkerThread } from './worker-thread.ts';

const FIRST_RESTART_DELAY_MS = 100;
const LONGEST_RESTART_DELAY_MS = 10_000;
/** A worker that ran for less counts towards the delay of the next start. */
const SHORT_LIFE_MS = 10_000;

/** How a worker ended unexpectedly: on its own, or because the watchdog found that it hangs. */
export type WorkerEnd = 'died' | 'hung';

/** What a slot works with. */
export interface WorkerSlotCollaborators {
  /** Starts a thread with the current settings. `onEnd` is called once, after its last message. */
  readonly startThread: (worker: number, onEnd: (reason: Error) => void) => WorkerThread;
  /** Frees what an ended thread held. Returns the number of requests that ended with it. */
  readonly free: (worker: number) => number;
  readonly watchdog: Pick<Watchdog, 'isHung' | 'reset'>;
  /** Called when a worker has ended unexpectedly. */
  readonly onWorkerEnd: (end: WorkerEnd) => void;
  readonly log: Log<'debug' | 'info' | 'warn' | 'error'>;
}

/** One worker. It keeps its index when a new thread replaces one that ended or that hangs. */
export class WorkerSlot {
  readonly #worker: number;
  readonly #collaborators: WorkerSlotCollaborators;
  /** Null between the end of a thread and the start of the next. */
  #thread: WorkerThread | null = null;
  /** Why the last thread that ended did so. */
  #endedBy: Error | null = null;
  #startedAtMs = 0;
  /** The number of threads in a row that ended within SHORT_LIFE_MS. */
  #shortLives = 0;
  /** Whether the thread is being terminated because it hangs. */
  #isHung = false;
  #restart: NodeJS.Timeout | undefined;
  /** Where a replacement listens. Null until the first thread listens. */
  #address: ListenOptions | null = null;
  #isClosing = false;
  #lostInClosing = 0;

  /** Starts the first thread. */
  constructor(worker: number, collaborators: WorkerSlotCollaborators) {
    this.#worker = worker;
    this.#collaborators = collaborators;
    this.#start();
  }

  /** The thread that runs now. */
  get thread(): WorkerThread | null {
    return this.#thread;
  }

  /** The number of requests that ended with their thread while the worker was closing. */
  get lostInClosing(): number {
    return this.#lostInClosing;
  }

  /** Has the thread listen. Once it does, it is replaced when it ends. Rejects with the reason if it ended before. */
  async listen(address: ListenOptions): Promise<void> {
    try {
      await this.#thread?.calls.listen(address);
    } catch (error) {
      if (this.#thread !== null) throw error;
    }
    if (this.#thread === null) {
      const message = `worker ${this.#worker + 1} ended before it could listen: ${this.#endedBy?.message}`;
      throw new Error(message, { cause: this.#endedBy });
    }
    this.#address = address;
  }

  /** From now on the thread is not replaced. */
  stopReplacing(): void {
    this.#isClosing = true;
    clearTimeout(this.#restart);
  }

  /** Terminates the thread if it hangs, even in an endless loop or a blocking wait. */
  terminateIfHung(): void {
    const { watchdog, log } = this.#collaborators;
    if (this.#thread === null || this.#isHung || !watchdog.isHung(this.#worker)) return;
    this.#isHung = true;
    log.error({ worker: this.#worker + 1 }, 'worker hangs');
    void this.#thread.terminate(new Error('it hangs'));
  }

  #start(): WorkerThread {
    const { startThread, watchdog } = this.#collaborators;
    const thread = startThread(this.#worker, (reason) => this.#ended(reason));
    watchdog.reset(this.#worker);
    this.#thread = thread;
    this.#isHung = false;
    this.#startedAtMs = performance.now();
    return thread;
  }

  #ended(reason: Error): void {
    const { free, onWorkerEnd, log } = this.#collaborators;
    this.#thread = null;
    this.#endedBy = reason;
    const lost = free(this.#worker);
    if (this.#isClosing) {
      this.#lostInClosing += lost;
      if (lost > 0) log.error({ worker: this.#worker + 1, err: reason, lost }, 'worker ended');
      return;
    }
    onWorkerEnd(this.#isHung ? 'hung' : 'died');
    const isShortLife = performance.now() - this.#startedAtMs < SHORT_LIFE_MS;
    this.#shortLives = isShortLife ? this.#shortLives + 1 : 0;
    const delayMs = restartDelayMs(this.#shortLives);
    log.error({ worker: this.#worker + 1, err: reason, lost, restart_ms: delayMs }, 'worker ended');
    const address = this.#address;
    if (address !== null) this.#restart = setTimeout(() => void this.#replace(address), delayMs);
  }

  async #replace(address: ListenOptions): Promise<void> {
    const { log } = this.#collaborators;
    const thread = this.#start();
    try {
      await this.listen(address);
      log.info({ worker: this.#worker + 1 }, 'worker replaced');
    } catch (error) {
      log.error({ worker: this.#worker + 1, err: error }, 'worker cannot listen');
      await thread.terminate(new Error('it could not listen', { cause: error }));
    }
  }
}

/**
 * How long to wait before a worker is replaced, after `shortLives` threads in a row that ended soon. The first is
 * replaced at once; the delay then doubles, so that a worker that cannot start costs next to nothing.
 */
export function restartDelayMs(shortLives: number): number {
  if (shortLives <= 1) return 0;
  return Math.min(LONGEST_RESTART_DELAY_MS, FIRST_RESTART_DELAY_MS * 2 ** (shortLives - 2));
}
