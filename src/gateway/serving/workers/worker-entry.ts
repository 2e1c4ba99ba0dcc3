import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { publishEventLoopDelay } from '#otel/metrics';
import { SharedQueueState, WorkerRecordSender } from '#otel/queue';
import { CUT_NOTICE_MS, createServing, type Serving, type ServingLog } from '../serving.ts';
import type { LogLevel, NumberedCall, WorkerCall, WorkerMessage, WorkerStart } from './messages.ts';
import { Questions } from './questions.ts';
import { HEARTBEAT_INTERVAL_MS } from './watchdog.ts';

/*
 * The entry point of a worker thread: a data plane that the main thread calls. An uncaught error ends only this thread,
 * after the records of its requests are sent; worker-slot.ts starts another. `process` is that of the thread.
 */

const port = parentPort;
if (port === null) throw new Error('this file is the entry point of a worker thread');

const { settings, queueMemory, instance, topology, heartbeats, logLevels } = workerData as WorkerStart;

/** How long a crashed thread may take to cut its requests and send their records. */
const CRASH_CLEANUP_MS = 2 * CUT_NOTICE_MS;

const post = (message: WorkerMessage, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);

const recordSender = new WorkerRecordSender({
  queueState: new SharedQueueState(queueMemory),
  worker: settings.worker,
  instance,
  post: (records) => post({ kind: 'records', records }, [records.bytes.buffer]),
});

const { log, setLevels } = createLog(logLevels);

const questions = new Questions((id, question) => post({ kind: 'question', id, question }));
const serving = createServing(settings, {
  consumer: recordSender,
  authority: questions,
  log,
  onHealth: (decision) => post({ kind: 'health', decision }),
  onBackground: (response) => post({ kind: 'background', response }),
});
process.once('uncaughtException', (error) => void endThread(error));
void begin(port);

/** Takes calls once the replicas are known. Not awaited: a single executable evaluates this file as a script. */
async function begin(calls: MessagePort): Promise<void> {
  if (topology !== null) await serving.apply(topology);
  publishEventLoopDelay(settings.memory.eventLoopDelays, settings.worker + 1);
  const countHeartbeat = () => Atomics.add(heartbeats, settings.worker, 1);
  // The first one at once: it shows that the code is loaded.
  countHeartbeat();
  setInterval(countHeartbeat, HEARTBEAT_INTERVAL_MS).unref();
  calls.on('message', ({ id, call }: NumberedCall) => void answer(id, call));
}

async function answer(id: number, call: WorkerCall): Promise<void> {
  try {
    const result = await carryOut(serving, call);
    // Records of requests that the answer covers are sent before it.
    recordSender.flush();
    post({ kind: 'done', id, result });
  } catch (error) {
    const isError = error instanceof Error;
    const code = isError && 'code' in error && typeof error.code === 'string' ? error.code : null;
    post({ kind: 'failed', id, message: isError ? error.message : 'unknown error', code });
  }
}

/** Cuts the requests in flight and sends their records, then ends the thread with the error. */
async function endThread(error: unknown): Promise<void> {
  const deadline = setTimeout(rethrow, CRASH_CLEANUP_MS);
  // Later errors are ignored.
  process.on('uncaughtException', () => undefined);
  try {
    await serving.finish(0);
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

async function carryOut(to: Serving, call: WorkerCall): Promise<number> {
  switch (call.kind) {
    case 'listen':
      return to.listen(call.address);
    case 'finish':
      return to.finish(call.graceMs);
    case 'apply':
      await to.apply(call.topology);
      return 0;
    case 'configure':
      setLevels(call.logLevels);
      await to.configure(call.config);
      return 0;
    case 'useClients':
      await to.useClients(call.clients);
      return 0;
    case 'useJwtKeys':
      await to.useJwtKeys(call.keys);
      return 0;
    case 'answer':
      questions.receive(call.question, call.result);
      return 0;
    case 'useTls':
      await to.useTls(call.material);
      return 0;
    case 'confirm':
      await to.confirm();
      return 0;
    case 'settleRecords':
      await to.settleRecords();
      return 0;
    case 'startClosing':
      to.startClosing();
      return 0;
    case 'close':
      await to.close();
      return 0;
  }
}

/** Sends lines to the main thread's log: lines written by several threads would interleave. */
function createLog(initialLevels: readonly LogLevel[]) {
  let levels = initialLevels;
  const write = (level: LogLevel) => (fields: object, message: string) => {
    if (levels.includes(level)) post({ kind: 'log', level, fields, message });
  };
  const log: ServingLog = {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
  };
  return {
    log,
    setLevels(next: readonly LogLevel[]): void {
      levels = next;
    },
  };
}
