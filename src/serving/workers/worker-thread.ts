import { extname } from 'node:path';
import { Worker } from 'node:worker_threads';
import type { PackedRecords } from '#otel/queue/worker-record-sender.ts';
import type { LogLevel, NumberedOrder, Order, WorkerMessage, WorkerStart } from './messages.ts';

/** Whom the main thread's side of a worker tells. */
export interface WorkerThreadHandlers {
  readonly onRecords: (records: PackedRecords) => void;
  readonly onLog: (level: LogLevel, fields: object, message: string) => void;
  /** Called once, after the last message of the thread. `error`: what was thrown in it, if anything was. */
  readonly onEnd: (error: unknown) => void;
}

interface PendingOrder {
  readonly resolve: (result: number) => void;
  readonly reject: (error: Error) => void;
}

/** A worker as the main thread sees it: orders and their answers, and what it sends by itself. */
export class WorkerThread {
  readonly #worker: Worker;
  readonly #handlers: WorkerThreadHandlers;
  readonly #pending = new Map<number, PendingOrder>();
  readonly #ended = Promise.withResolvers<void>();
  #lastId = 0;
  #error: unknown;
  #hasEnded = false;

  constructor(start: WorkerStart, handlers: WorkerThreadHandlers) {
    // The published package has JavaScript in place of this file, and of that one.
    const url = new URL(`./worker-entry${extname(import.meta.filename)}`, import.meta.url);
    this.#handlers = handlers;
    this.#worker = new Worker(url, { workerData: start, name: `worker ${start.settings.worker + 1}` });
    this.#worker.on('message', (message: WorkerMessage) => this.#receive(message));
    this.#worker.on('error', (error) => {
      this.#error = error;
    });
    // Node delivers what the thread had posted before it tells of the exit.
    this.#worker.on('exit', () => this.#end());
  }

  /** Gives an order; resolves with its result, rejects when it fails or the thread ends before it has answered. */
  call(order: Order): Promise<number> {
    if (this.#hasEnded) return Promise.reject(new Error('the worker has ended'));
    const id = ++this.#lastId;
    const numbered: NumberedOrder = { id, order };
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject });
      this.#worker.postMessage(numbered);
    });
  }

  /** Ends the thread, whatever it is doing; resolves when it has ended. */
  async terminate(): Promise<void> {
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
      case 'log':
        this.#handlers.onLog(message.level, message.fields, message.message);
        break;
    }
  }

  #take(id: number): PendingOrder | undefined {
    const pending = this.#pending.get(id);
    this.#pending.delete(id);
    return pending;
  }

  #end(): void {
    this.#hasEnded = true;
    const reason = this.#error instanceof Error ? { cause: this.#error } : {};
    for (const { reject } of this.#pending.values()) reject(new Error('the worker ended', reason));
    this.#pending.clear();
    this.#handlers.onEnd(this.#error);
    this.#ended.resolve();
  }
}
