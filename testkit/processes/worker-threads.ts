import { Session } from 'node:inspector/promises';
import type { Worker } from 'node:worker_threads';
import { EventLog } from '../event-log.ts';

/** The worker threads of the gateways that this process starts during the watch. */
export interface WorkerThreads extends Disposable {
  /** In the order of their start, with those that have ended. */
  readonly threads: readonly Worker[];
  /** Resolves when at least this many have started. */
  untilStarted(count: number): Promise<void>;
  /** Ends a thread at once, as a crash of V8 would. Resolves when it has ended. */
  kill(index: number): Promise<void>;
  /** Causes an uncaught exception in a thread with an unknown message. Resolves when it has ended. */
  crash(index: number): Promise<void>;
  /** Evaluates JavaScript in a thread, as a debugger would. Resolves when that is done. */
  evaluate(index: number, expression: string): Promise<void>;
  /** Blocks a thread for a time, in which it answers nothing. Resolves when it is blocked. */
  block(index: number, ms: number): Promise<void>;
}

/** Watches for worker threads until it is disposed. */
export function watchWorkerThreads(): WorkerThreads {
  const threads = new EventLog<Worker>();
  const onWorker = (worker: Worker) => {
    if (worker.threadName?.startsWith('worker ')) threads.push(worker);
  };
  process.on('worker', onWorker);
  const threadAt = (index: number): Worker => {
    const thread = threads.items[index];
    if (thread === undefined) throw new RangeError(`no thread ${index}`);
    return thread;
  };
  return {
    threads: threads.items,
    untilStarted: async (count) => void (await threads.count(count)),
    async kill(index) {
      await threadAt(index).terminate();
    },
    async crash(index) {
      const ended = new Promise((resolve) => threadAt(index).once('exit', resolve));
      threadAt(index).postMessage(null);
      await ended;
    },
    async evaluate(index, expression) {
      await evaluateUntilTold(threadAt(index), `${expression}; ${TELL}`);
    },
    async block(index, ms) {
      const stop = `Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ${ms})`;
      await evaluateUntilTold(threadAt(index), `${TELL}; ${stop}`);
    },
    [Symbol.dispose]: () => void process.off('worker', onWorker),
  };
}

/** A message that the gateway does not know. */
const TOLD = 'told';
const TELL = `process.getBuiltinModule('worker_threads').parentPort.postMessage({ kind: '${TOLD}' })`;

/** Makes a thread report that it has come this far. */
async function evaluateUntilTold(thread: Worker, expression: string): Promise<void> {
  const told = new Promise<void>((resolve) => {
    thread.on('message', ({ kind }) => kind === TOLD && resolve());
  });
  const debugging = await evaluateIn(thread, expression);
  await told;
  debugging.disconnect();
}

/** Lets a thread evaluate JavaScript, as a debugger would; what has not begun when that disconnects never does. */
async function evaluateIn({ threadName }: Worker, expression: string): Promise<Session> {
  const session = new Session();
  session.connect();
  const attached = new Promise<string>((resolve) => {
    session.on('NodeWorker.attachedToWorker', ({ params: { sessionId, workerInfo } }) => {
      if (workerInfo.title.endsWith(`] ${threadName}`)) resolve(sessionId);
    });
  });
  await session.post('NodeWorker.enable', { waitForDebuggerOnStart: false });
  const message = JSON.stringify({ id: 1, method: 'Runtime.evaluate', params: { expression } });
  await session.post('NodeWorker.sendMessageToWorker', { sessionId: await attached, message });
  return session;
}
