import type { Worker } from 'node:worker_threads';
import { startThread } from '#base/embedded';
import { startDeadline } from '#otel/base';
import type {
  Batch,
  FromHistory,
  HistorySettings,
  HistoryStart,
  ToHistory,
  WriterState,
} from './messages.ts';
import type { Answer, Query } from './query.ts';

/** Why the history does not answer: a word for people, or a code. */
export class HistoryRefusal extends Error {
  readonly reason: string;

  constructor(reason: string) {
    super(`the history does not answer: ${reason}`);
    this.reason = reason;
  }
}

/** How long an answer may take. A query takes 5 s at most; a slow disk may keep the thread. */
const ANSWER_TIMEOUT_MS = 15_000;
/** So many queries may wait. */
const MAX_QUERIES = 16;

/** What the owner of the thread hears. */
interface ThreadListeners {
  /** Batches are on disk, and their memory is free. */
  readonly onWritten: (batches: number, memory: readonly ArrayBuffer[]) => void;
  readonly onState: (state: WriterState) => void;
  /** The thread ended by itself. */
  readonly onEnd: () => void;
}

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: HistoryRefusal) => void;
  readonly endDeadline: () => void;
}

/** The main thread's side of the thread of the history. */
export class HistoryThread {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #closed = Promise.withResolvers<void>();
  #lastQuery = 0;
  #isClosing = false;

  constructor(start: HistoryStart, listeners: ThreadListeners) {
    this.#worker = startThread('history-entry', import.meta, {
      workerData: start,
      name: 'history',
      // node:sqlite says in Node 24 that it is experimental.
      execArgv: ['--disable-warning=ExperimentalWarning'],
    });
    // It never keeps the process alive: who waits for it says so.
    this.#worker.unref();
    this.#worker.on('message', (message: FromHistory) => this.#receive(message, listeners));
    // Its reason is told as a condition, without a text that could quote a record.
    this.#worker.on('error', () => undefined);
    this.#worker.on('exit', () => {
      for (const id of this.#waiting.keys()) this.#settle(id, new HistoryRefusal('ended'));
      this.#closed.resolve();
      if (!this.#isClosing) listeners.onEnd();
    });
  }

  /** Gives it a batch, whose memory moves there. */
  write(batch: Batch): void {
    this.#send(
      { kind: 'batch', batch },
      batch.chunks.map(({ bytes }) => bytes.buffer),
    );
  }

  configure(settings: HistorySettings): void {
    this.#send({ kind: 'configure', settings });
  }

  /** Rejects with a HistoryRefusal. */
  async ask(query: Query): Promise<Answer> {
    if (this.#waiting.size >= MAX_QUERIES) throw new HistoryRefusal('busy');
    const id = ++this.#lastQuery;
    const { promise, resolve, reject } = Promise.withResolvers<Answer>();
    const tooSlow = () => this.#settle(id, new HistoryRefusal('too_slow'));
    const endDeadline = startDeadline(ANSWER_TIMEOUT_MS, tooSlow);
    this.#waiting.set(id, { resolve, reject, endDeadline });
    this.#send({ kind: 'query', id, query });
    return await promise;
  }

  /** Writes what it was given and ends, within `ms`. False: it took longer, and was ended. */
  async close(ms: number): Promise<boolean> {
    this.#isClosing = true;
    this.#worker.ref();
    this.#send({ kind: 'close' });
    const timer = setTimeout(() => void this.#worker.terminate(), ms);
    let isDone = false;
    this.#worker.on('message', ({ kind }: FromHistory) => {
      if (kind === 'closed') isDone = true;
    });
    await this.#closed.promise;
    clearTimeout(timer);
    return isDone;
  }

  #send(message: ToHistory, transfer: ArrayBuffer[] = []): void {
    this.#worker.postMessage(message, transfer);
  }

  #receive(message: FromHistory, { onWritten, onState }: ThreadListeners): void {
    switch (message.kind) {
      case 'written':
        onWritten(message.batches, message.memory);
        break;
      case 'state':
        onState(message.state);
        break;
      case 'answer': {
        const { id, answer } = message;
        this.#settle(id, answer.kind === 'refused' ? new HistoryRefusal(answer.reason) : answer);
        break;
      }
      case 'closed':
    }
  }

  #settle(id: number, outcome: Answer | HistoryRefusal): void {
    const waiting = this.#waiting.get(id);
    if (waiting === undefined) return;
    this.#waiting.delete(id);
    waiting.endDeadline();
    if (outcome instanceof HistoryRefusal) waiting.reject(outcome);
    else waiting.resolve(outcome);
  }
}
