import { parentPort, workerData } from 'node:worker_threads';
import { RecordLedger } from '#otel/queue/record-ledger.ts';
import { WorkerOutlet } from '#otel/queue/worker-outlet.ts';
import { createServing, LAST_WORDS_MS, type Serving, type ServingLog } from '../serving.ts';
import type { LogLevel, NumberedOrder, Order, WorkerMessage, WorkerStart } from './messages.ts';
import { BEAT_EVERY_MS } from './watchdog.ts';

/*
 * The entry of a worker's thread: a data plane that takes its orders from the main thread. Whatever is thrown here
 * and caught by nobody ends this thread alone, with the records of its requests told; worker-group.ts starts another.
 * `process` is that of the thread: main.ts has the process's own.
 */

const port = parentPort;
if (port === null) throw new Error('this file is the entry of a worker thread');

const { settings, ledger, topology, beats, ...start } = workerData as WorkerStart;
let { logLevels } = start;

/** How long a thread that is about to end has for its records. */
const LAST_WORK_MS = 2 * LAST_WORDS_MS;

const post = (message: WorkerMessage, transfer: ArrayBuffer[] = []) => port.postMessage(message, transfer);

const outlet = new WorkerOutlet({
  ledger: new RecordLedger(ledger),
  worker: settings.worker,
  post: (records) => post({ kind: 'records', records }, [records.bytes.buffer]),
});

const serving = createServing(settings, {
  outlet,
  log: createLog(),
  onRecord: (record) => outlet.note(record),
});
process.once('uncaughtException', (error) => void end(error));
if (topology !== null) await serving.apply(topology);

const beat = () => Atomics.add(beats, settings.worker, 1);
// At once: a worker that serves must not be taken for one that loads its code.
beat();
setInterval(beat, BEAT_EVERY_MS).unref();
port.on('message', ({ id, order }: NumberedOrder) => void answer(id, order));

async function answer(id: number, order: Order): Promise<void> {
  try {
    const result = await carryOut(serving, order);
    // The answer comes after the records of the requests that it tells of.
    outlet.flush();
    post({ kind: 'done', id, result });
  } catch (error) {
    const isError = error instanceof Error;
    const code = isError && 'code' in error && typeof error.code === 'string' ? error.code : null;
    post({ kind: 'failed', id, message: isError ? error.message : 'unknown error', code });
  }
}

/** Cuts the requests in flight and tells of their records, before the thread ends by the error. */
async function end(error: unknown): Promise<void> {
  const over = setTimeout(rethrow, LAST_WORK_MS);
  // Whatever else breaks meanwhile.
  process.on('uncaughtException', () => undefined);
  try {
    await serving.finish(0);
    outlet.flush();
  } finally {
    clearTimeout(over);
    rethrow();
  }

  function rethrow(): void {
    process.removeAllListeners('uncaughtException');
    setImmediate(() => {
      throw error;
    });
  }
}

async function carryOut(to: Serving, order: Order): Promise<number> {
  switch (order.kind) {
    case 'listen':
      return to.listen(order.address);
    case 'finish':
      return to.finish(order.graceMs);
    case 'apply':
      await to.apply(order.topology);
      return 0;
    case 'configure':
      ({ logLevels } = order);
      await to.configure(order.config);
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

/** Lines go to the main thread's log: written from several threads they would tear each other. */
function createLog(): ServingLog {
  const write = (level: LogLevel) => (fields: object, message: string) => {
    if (logLevels.includes(level)) post({ kind: 'log', level, fields, message });
  };
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}
