import { once } from 'node:events';
import { url as inspectorUrl } from 'node:inspector';
import { type AddressInfo, createServer } from 'node:net';
import type { Telemetry } from '#otel';
import type { Log } from '#otel/base';
import {
  type ControlCalls,
  type ListenOptions,
  PLANE_CALLS,
  type PlaneCalls,
  type WorkerCalls,
} from '../calls.ts';
import { type Answers, type CallsOfAll, carryOut, toCalls } from '../channel.ts';
import type { Serving, ServingSettings, WorkerLoopTime } from '../serving.ts';
import { freeWorkerMemory } from '../serving-memory.ts';
import { CHECK_INTERVAL_MS, Watchdog } from './watchdog.ts';
import { type WorkerEnd, WorkerSlot } from './worker-slot.ts';
import { WorkerThread } from './worker-thread.ts';

/** The settings of each worker, and how many there are. */
export type WorkerGroupSettings = Omit<ServingSettings, 'worker'> & { readonly workerCount: number };

/** What the group works with. */
export interface WorkerGroupCollaborators {
  readonly control: ControlCalls;
  readonly telemetry: Pick<Telemetry, 'queueMemory' | 'receive' | 'workerStarted' | 'workerEnded'>;
  readonly log: Log<'debug' | 'info' | 'warn' | 'error'>;
  /** Called when the thread of a worker has ended, after everything that it has sent. */
  readonly onThreadEnd: (worker: number) => void;
  /** Called when a worker has ended unexpectedly. */
  readonly onWorkerEnd: (end: WorkerEnd) => void;
}

/**
 * A data plane of several workers. Each has its own thread and its own listener on the same port; the system spreads the
 * connections over them. A worker that hangs is terminated, and a worker that ends is replaced: its requests no longer
 * count as in flight, and their records are counted as lost.
 */
export class WorkerGroup implements Serving {
  readonly all: CallsOfAll<PlaneCalls>;
  readonly #settings: WorkerGroupSettings;
  readonly #collaborators: WorkerGroupCollaborators;
  readonly #slots: readonly WorkerSlot[];
  readonly #heartbeats: Int32Array;
  readonly #watchdog: Watchdog;
  readonly #checks: NodeJS.Timeout;
  /** What a thread that starts is called first: the last call of each name that is kept, in their order. */
  readonly #kept = new Map<keyof WorkerCalls, readonly unknown[]>();

  constructor(settings: WorkerGroupSettings, collaborators: WorkerGroupCollaborators) {
    const { workerCount } = settings;
    this.#settings = settings;
    this.#collaborators = collaborators;
    this.all = toCalls(PLANE_CALLS, (name, how) => (...args) => {
      if (how === 'keep') {
        this.#kept.delete(name);
        this.#kept.set(name, args);
      }
      return this.#callAll(name, ...args);
    });
    this.#heartbeats = new Int32Array(new SharedArrayBuffer(workerCount * Int32Array.BYTES_PER_ELEMENT));
    this.#watchdog = new Watchdog(this.#heartbeats);
    this.#checks = setInterval(() => this.#terminateHungWorkers(), CHECK_INTERVAL_MS).unref();
    this.#slots = Array.from({ length: workerCount }, (_, worker) => this.#createSlot(worker));
  }

  /**
   * Binds the address itself first. Workers, which share a port, would not notice that another gateway uses it; and the port
   * that the system picks for 0 is kept until they have it, because somebody else could get it in between.
   */
  async listen(address: ListenOptions): Promise<number> {
    await using server = createServer((socket) => socket.destroy());
    const isPicked = address.port === 0;
    await once(server.listen({ ...address, exclusive: true, reusePort: isPicked }), 'listening');
    const { port } = server.address() as AddressInfo;
    if (!isPicked) await server[Symbol.asyncDispose]();
    await Promise.all(this.#slots.map((slot) => slot.listen({ ...address, port, reusePort: true })));
    return port;
  }

  eventLoopTimes(): readonly WorkerLoopTime[] {
    return this.#slots.flatMap(({ thread }, worker) => {
      if (thread === null) return [];
      const { active, idle } = thread.eventLoopUtilization();
      return [{ worker: worker + 1, activeMs: active, idleMs: idle }];
    });
  }

  startClosing(): void {
    this.#stopReplacing();
    void this.#callAll('startClosing');
  }

  async finish(graceMs: number): Promise<number> {
    this.#stopReplacing();
    const { results, silent } = await this.#callAll<number>('finish', graceMs);
    // The requests of a worker that does not answer are counted when it has ended.
    await Promise.all(silent.map((number) => this.#slots[number - 1]?.thread?.terminate()));
    const lost = this.#slots.map(({ lostInClosing }) => lostInClosing);
    return [...results, ...lost].reduce((total, count) => total + count, 0);
  }

  async close(): Promise<void> {
    this.#stopReplacing();
    await this.#callAll('close');
    await Promise.all(this.#slots.map(({ thread }) => thread?.terminate()));
  }

  #stopReplacing(): void {
    clearInterval(this.#checks);
    for (const slot of this.#slots) slot.stopReplacing();
  }

  #terminateHungWorkers(): void {
    // A worker at a breakpoint does not hang.
    if (inspectorUrl() !== undefined) return;
    for (const slot of this.#slots) slot.terminateIfHung();
  }

  #createSlot(index: number): WorkerSlot {
    const { telemetry, onThreadEnd, onWorkerEnd, log } = this.#collaborators;
    return new WorkerSlot(index, {
      startThread: (worker, onEnd) => this.#startThread(worker, onEnd),
      free: (worker) => {
        const lost = telemetry.workerEnded(worker);
        onThreadEnd(worker);
        freeWorkerMemory(this.#settings.memory, worker);
        return lost;
      },
      watchdog: this.#watchdog,
      onWorkerEnd,
      log,
    });
  }

  async #callAll<R>(name: keyof WorkerCalls, ...args: readonly unknown[]): Promise<Answers<R>> {
    const results: R[] = [];
    const silent: number[] = [];
    const calls = this.#slots.map(async (slot, worker) => {
      const { thread } = slot;
      if (thread === null) return;
      try {
        results.push((await this.#call(thread, name, args)) as R);
      } catch {
        // A worker that has ended meanwhile does nothing more.
        if (slot.thread === thread) silent.push(worker + 1);
      }
    });
    await Promise.all(calls);
    return { results, silent };
  }

  /** A worker that fails to take what is kept is terminated: its replacement starts with that. */
  async #call(thread: WorkerThread, name: keyof WorkerCalls, args: readonly unknown[]): Promise<unknown> {
    try {
      return await carryOut(thread.calls, name, args);
    } catch (error) {
      if (this.#kept.has(name)) await thread.terminate(error instanceof Error ? error : null);
      throw error;
    }
  }

  #startThread(worker: number, onEnd: (reason: Error) => void): WorkerThread {
    const { workerCount: _, ...settings } = this.#settings;
    const { telemetry, control, log } = this.#collaborators;
    const thread = new WorkerThread(
      {
        settings: { ...settings, worker },
        queueMemory: telemetry.queueMemory,
        instance: telemetry.workerStarted(worker),
        heartbeats: this.#heartbeats,
      },
      {
        ...control,
        onRecords: (records) => telemetry.receive(worker, records),
        onLog: (level, fields, message) => log[level]({ worker: worker + 1, ...fields }, message),
      },
      onEnd,
    );
    for (const [name, args] of this.#kept) this.#call(thread, name, args).catch(() => undefined);
    return thread;
  }
}
