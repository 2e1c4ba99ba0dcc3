import type { EventLoopUtilization } from 'node:perf_hooks';
import type { Worker } from 'node:worker_threads';
import { startThread } from '#base/embedded';
import type { SharedQueueMemory } from '#otel/queue/shared';
import { type MainThreadCalls, WORKER_CALLS, type WorkerCalls } from '../calls.ts';
import { Channel } from '../channel.ts';
import type { ServingSettings } from '../serving.ts';

/** What a worker thread gets when it starts. */
export interface WorkerStart {
  /** Those of the start of the gateway: calls follow with what has changed. */
  readonly settings: ServingSettings;
  readonly queueMemory: SharedQueueMemory;
  /** The `instance` of its records. */
  readonly instance: string;
  /** One word per worker. Each counts up its own while its event loop runs. */
  readonly heartbeats: Int32Array;
}

/** The main thread's side of a worker. */
export class WorkerThread {
  readonly #worker: Worker;
  readonly #channel: Channel<WorkerCalls>;
  readonly #ended = Promise.withResolvers<void>();
  #reason: Error | null = null;

  /** `onEnd`: called once, after the last message of the thread, with the reason why it ended. */
  constructor(start: WorkerStart, own: MainThreadCalls, onEnd: (reason: Error) => void) {
    this.#worker = startThread('worker-entry', import.meta, {
      workerData: start,
      name: `worker ${start.settings.worker + 1}`,
    });
    this.#channel = new Channel(this.#worker, WORKER_CALLS);
    this.#channel.serve(own);
    this.#worker.on('error', (error: unknown) => {
      this.#reason ??= error instanceof Error ? error : new Error('it threw what is no error');
    });
    // Node delivers all messages of the thread before this event.
    this.#worker.on('exit', (code) => {
      const reason = this.#reason ?? new Error(`it exited with code ${code}`);
      this.#channel.close(new Error('the worker ended', { cause: reason }));
      onEnd(reason);
      this.#ended.resolve();
    });
  }

  /** The calls of the worker. They reject if it ends before it answers. */
  get calls(): WorkerCalls {
    return this.#channel.calls;
  }

  /** How busy its event loop was since it started. Read from here, also while the thread is blocked. */
  eventLoopUtilization(): EventLoopUtilization {
    return this.#worker.performance.eventLoopUtilization();
  }

  /** Ends the thread, even if it is blocked. Resolves when it has ended. `reason`: for the log. */
  async terminate(reason: Error | null = null): Promise<void> {
    this.#reason ??= reason;
    void this.#worker.terminate();
    await this.#ended.promise;
  }
}
