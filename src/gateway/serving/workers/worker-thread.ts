import type { EventLoopUtilization } from 'node:perf_hooks';
import type { Worker } from 'node:worker_threads';
import { startThread } from '#base/embedded';
import { waitAtMost } from '#otel/base';
import type { PackedRecords } from '#otel/queue';
import type { BackgroundResponse } from '#proxy';
import type { HealthDecision } from '#replicas/terms';
import type {
  LogLevel,
  NumberedCall,
  WorkerCall,
  WorkerMessage,
  WorkerQuestion,
  WorkerStart,
} from './messages.ts';

/** Callbacks for what a worker sends on its own. */
export interface WorkerThreadHandlers {
  readonly onRecords: (records: PackedRecords) => void;
  /** Answers a question. Never rejects. */
  readonly onQuestion: (question: WorkerQuestion) => Promise<number | null>;
  readonly onHealth: (decision: HealthDecision) => void;
  readonly onBackground: (response: BackgroundResponse) => void;
  readonly onLog: (level: LogLevel, fields: object, message: string) => void;
  /** Called once, after the last message of the thread. `reason`: why it ended. */
  readonly onEnd: (reason: Error) => void;
}

interface PendingCall {
  readonly resolve: (result: number) => void;
  readonly reject: (error: Error) => void;
}

/** The main thread's side of a worker: calls and their answers, and the messages that the worker sends on its own. */
export class WorkerThread {
  readonly #worker: Worker;
  readonly #handlers: WorkerThreadHandlers;
  readonly #pending = new Map<number, PendingCall>();
  readonly #ended = Promise.withResolvers<void>();
  #lastId = 0;
  #reason: Error | null = null;
  #hasEnded = false;

  constructor(start: WorkerStart, handlers: WorkerThreadHandlers) {
    this.#handlers = handlers;
    this.#worker = startThread('worker-entry', import.meta, {
      workerData: start,
      name: `worker ${start.settings.worker + 1}`,
    });
    this.#worker.on('message', (message: WorkerMessage) => this.#receive(message));
    this.#worker.on('error', (error: unknown) => {
      this.#reason ??= error instanceof Error ? error : new Error('it threw what is no error');
    });
    // Node delivers all messages of the thread before this event.
    this.#worker.on('exit', (code) => this.#end(this.#reason ?? new Error(`it exited with code ${code}`)));
  }

  /** Calls the worker. Resolves with the result; rejects if the call fails or the thread ends before it answers. */
  call(call: WorkerCall): Promise<number> {
    if (this.#hasEnded) return Promise.reject(new Error('the worker has ended'));
    const id = ++this.#lastId;
    const numbered: NumberedCall = { id, call };
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#worker.postMessage(numbered);
    });
  }

  /** Returns the result of a call, or null if the worker fails, ends, or takes longer than `ms`. */
  callWithin(ms: number, call: WorkerCall): Promise<number | null> {
    const answer: Promise<number | null> = this.call(call).catch(() => null);
    return waitAtMost(ms, answer);
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

  #receive(message: WorkerMessage): void {
    switch (message.kind) {
      case 'done':
        this.#take(message.id)?.resolve(message.result);
        break;
      case 'failed': {
        const { code } = message;
        this.#take(message.id)?.reject(
          Object.assign(new Error(message.message), code === null ? {} : { code }),
        );
        break;
      }
      case 'records':
        this.#handlers.onRecords(message.records);
        break;
      case 'health':
        this.#handlers.onHealth(message.decision);
        break;
      case 'background':
        this.#handlers.onBackground(message.response);
        break;
      case 'question':
        void this.#answer(message.id, message.question);
        break;
      case 'log':
        this.#handlers.onLog(message.level, message.fields, message.message);
        break;
    }
  }

  async #answer(question: number, asked: WorkerQuestion): Promise<void> {
    const result = await this.#handlers.onQuestion(asked);
    // A thread that has ended in the meantime needs no answer.
    await this.call({ kind: 'answer', question, result }).catch(() => undefined);
  }

  #take(id: number): PendingCall | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #end(reason: Error): void {
    this.#hasEnded = true;
    for (const { reject } of this.#pending.values()) reject(new Error('the worker ended', { cause: reason }));
    this.#pending.clear();
    this.#handlers.onEnd(reason);
    this.#ended.resolve();
  }
}
