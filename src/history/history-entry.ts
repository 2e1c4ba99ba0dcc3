import { parentPort, workerData } from 'node:worker_threads';
import type { FromHistory, HistoryStart, ToHistory } from './messages.ts';
import { HistoryWriter } from './thread/history-writer.ts';

/*
 * The entry point of the thread of the history: it writes what the main thread sends, and answers queries.
 */

if (parentPort === null) throw new Error('this file is the entry point of a worker thread');
const port = parentPort;

const writer = new HistoryWriter(workerData as HistoryStart, {
  send: (message: FromHistory) =>
    port.postMessage(message, message.kind === 'written' ? [...message.memory] : []),
  nowMs: Date.now,
});

port.on('message', (message: ToHistory) => {
  switch (message.kind) {
    case 'batch':
      writer.add(message.batch);
      break;
    case 'query':
      void writer.answer(message.id, message.query);
      break;
    case 'configure':
      writer.configure(message.settings);
      break;
    case 'close':
      writer.close();
      port.close();
  }
});
