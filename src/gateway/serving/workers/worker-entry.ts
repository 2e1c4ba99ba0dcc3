import { parentPort, workerData } from 'node:worker_threads';
import type { Config } from '#config';
import { publishEventLoopDelay } from '#otel/metrics';
import { WorkerRecordSender } from '#otel/queue';
import { SharedQueueState } from '#otel/queue/shared';
import { CUT_NOTICE_MS, type LogLevel, MAIN_THREAD_CALLS } from '../calls.ts';
import { Channel } from '../channel.ts';
import { createServingWorker } from '../rehearsed.ts';
import { HEARTBEAT_INTERVAL_MS } from './watchdog.ts';
import type { WorkerStart } from './worker-thread.ts';

/*
 * The entry point of a worker thread: a data plane that the main thread calls. An uncaught error ends only this thread,
 * after the records of its requests are sent; worker-slot.ts starts another. `process` is that of the thread.
 */

if (parentPort === null) throw new Error('this file is the entry point of a worker thread');

const { settings, queueMemory, instance, heartbeats } = workerData as WorkerStart;

/** How long a crashed thread may take to cut its requests and send their records. */
const CRASH_CLEANUP_MS = 2 * CUT_NOTICE_MS;

const channel = new Channel(parentPort, MAIN_THREAD_CALLS);
const control = channel.calls;

const recordSender = new WorkerRecordSender({
  queueState: new SharedQueueState(queueMemory),
  worker: settings.worker,
  instance,
  post: control.onRecords,
});

let sentLevels = toSentLevels(settings.config);
/** Lines go to the main thread's log: lines written by several threads would interleave. */
const write = (level: LogLevel) => (fields: object, message: string) => {
  if (sentLevels.includes(level)) control.onLog(level, fields, message);
};
const worker = createServingWorker(settings, {
  consumer: recordSender,
  control,
  log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
});

process.once('uncaughtException', (error) => void endThread(error));
publishEventLoopDelay(settings.memory.eventLoopDelays, settings.worker + 1);
// The first one at once: it shows that the code is loaded.
countHeartbeat();
setInterval(countHeartbeat, HEARTBEAT_INTERVAL_MS).unref();

const own = {
  ...worker,
  configure(config: Config) {
    sentLevels = toSentLevels(config);
    return worker.configure(config);
  },
};
// Records of requests that an answer covers are sent before it.
channel.serve(own, () => recordSender.flush());

function countHeartbeat(): void {
  Atomics.add(heartbeats, settings.worker, 1);
}

/** The levels whose lines are sent. */
function toSentLevels({ log: { level: lowest } }: Config): readonly string[] {
  const levels: readonly string[] = ['trace', 'debug', 'info', 'warn', 'error'];
  return levels.includes(lowest) ? levels.slice(levels.indexOf(lowest)) : [];
}

/** Cuts the requests in flight and sends their records, then ends the thread with the error. */
async function endThread(error: unknown): Promise<void> {
  const deadline = setTimeout(rethrow, CRASH_CLEANUP_MS);
  // Later errors are ignored.
  process.on('uncaughtException', () => undefined);
  try {
    await worker.finish(0);
    recordSender.flush();
  } finally {
    clearTimeout(deadline);
    rethrow();
  }

  function rethrow(): void {
    process.removeAllListeners('uncaughtException');
    setImmediate(() => {
      throw error;
    });
  }
}
