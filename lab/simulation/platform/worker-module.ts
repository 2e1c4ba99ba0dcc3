import { EventEmitter } from 'node:events';
import workers from 'node:worker_threads';
import { type CurrentThread, SimulatedThread } from './thread.ts';

/** The longest that a message is under way. */
const LONGEST_MESSAGE_MS = 0.5;
/** The longest that a thread takes to load its code. */
const LONGEST_START_MS = 80;

/** One side of the channel between two threads. Messages wait until somebody listens. */
class SimulatedPort extends EventEmitter {
  /** The thread that receives here. */
  readonly #thread: SimulatedThread;
  readonly #waiting: unknown[] = [];
  #lastAtMs = 0;

  constructor(thread: SimulatedThread) {
    super();
    this.#thread = thread;
    this.on('newListener', (event) => {
      if (event === 'message') thread.next('listens', () => this.#drain());
    });
  }

  /** A copy of a message is on its way to this side. */
  send(message: unknown, transfer: readonly ArrayBuffer[] = []): void {
    const copy = structuredClone(message, { transfer: [...transfer] });
    const { schedule } = this.#thread.machine;
    const atMs = Math.max(
      this.#lastAtMs,
      schedule.nowMs + this.#thread.chance.between(0.005, LONGEST_MESSAGE_MS),
    );
    this.#lastAtMs = atMs;
    this.#thread.later('message', atMs - schedule.nowMs, () => {
      this.#waiting.push(copy);
      this.#drain();
    });
  }

  /** Runs something after all messages that are on their way. */
  afterMessages(label: string, run: () => void): void {
    this.#thread.later(label, Math.max(0, this.#lastAtMs - this.#thread.machine.schedule.nowMs), run);
  }

  /** The oldest message that has arrived. */
  take(): { readonly message: unknown } | undefined {
    return this.#waiting.length === 0 ? undefined : { message: this.#waiting.shift() };
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  close(): void {}

  #drain(): void {
    if (this.#waiting.length === 0 || this.listenerCount('message') === 0) return;
    const message = this.#waiting.shift();
    if (this.#waiting.length > 0) this.#thread.later('message', 0, () => this.#drain());
    this.emit('message', message);
  }
}

/** What a thread knows of the one that started it. */
interface ThreadStart {
  readonly workerData: unknown;
  readonly parentPort: object;
}

const starts = new WeakMap<SimulatedThread, ThreadStart>();

/** `node:worker_threads` of the threads that run one copy of the code. Workers are simulated threads in the same process. */
export function createWorkerModule(current: CurrentThread): typeof workers {
  class SimulatedWorker extends EventEmitter {
    readonly #parent = current();
    readonly #child: SimulatedThread;
    readonly #toChild: SimulatedPort;
    readonly #toParent: SimulatedPort;

    constructor(url: URL, { workerData, name }: { workerData?: unknown; name?: string }) {
      super();
      const thread = this.#parent;
      const child = new SimulatedThread(
        `${thread.name}/thread ${thread.nextChildNumber()}/${name ?? ''}`,
        thread,
        {
          onCrash: (error) => this.#exit(error),
        },
      );
      this.#child = child;
      thread.children.add(child);
      const toChild = new SimulatedPort(child);
      const toParent = new SimulatedPort(thread);
      this.#toChild = toChild;
      this.#toParent = toParent;
      toParent.on('message', (message) => this.emit('message', message));
      const parentPort = Object.assign(toChild, {
        postMessage: (message: unknown, transfer?: ArrayBuffer[]) => {
          if (!child.hasEnded) toParent.send(message, transfer);
        },
      });
      starts.set(child, { workerData: thread.machine.futexes.copy(workerData), parentPort });
      child.later('starts', child.chance.between(1, LONGEST_START_MS), () => {
        thread.program.run(child, url.pathname.replace(/^.*\/|\.[jt]s$/g, '')).catch((error: unknown) => {
          child.onUncaught(error);
        });
      });
    }

    readonly performance = { eventLoopUtilization: () => ({ active: 0, idle: 0, utilization: 0 }) };

    postMessage(message: unknown, transfer?: ArrayBuffer[]): void {
      if (!this.#child.hasEnded) this.#toChild.send(message, transfer);
    }

    ref(): void {}

    unref(): void {}

    async terminate(): Promise<number> {
      const { promise, resolve } = Promise.withResolvers<number>();
      if (this.#child.hasEnded) return 0;
      this.once('exit', resolve);
      this.#child.end();
      this.#exit();
      return promise;
    }

    /** `exit` follows the last message. */
    #exit(...errors: readonly unknown[]): void {
      this.#parent.children.delete(this.#child);
      this.#toParent.afterMessages('exit', () => {
        for (const error of errors) this.emit('error', error);
        this.emit('exit', errors.length === 0 ? 0 : 1);
      });
    }
  }

  return {
    ...workers,
    Worker: SimulatedWorker,
    get isMainThread() {
      return !starts.has(current());
    },
    get parentPort() {
      return starts.get(current())?.parentPort ?? null;
    },
    get workerData() {
      return starts.get(current())?.workerData ?? null;
    },
    receiveMessageOnPort: (port: SimulatedPort) => port.take(),
  } as unknown as typeof workers;
}
