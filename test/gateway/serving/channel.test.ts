import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import { MessageChannel, Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '#testkit/runs.ts';
import { watchTimers } from '#testkit/timers.ts';
import {
  type CallTable,
  Channel,
  type ChannelPort,
  toCalls,
  toDirectCalls,
} from '../../../src/gateway/serving/channel.ts';

interface Calls {
  double(value: number): Promise<number>;
  doubleSoon(value: number): Promise<number>;
  doubleLate(value: number): Promise<number>;
  note(value: number): void;
  take(bytes: Uint8Array<ArrayBuffer>): void;
}

interface StalledCalls {
  doubleSoon(value: number, state: Int32Array): Promise<number>;
}

const SOON_MS = 10;
const LATE_MS = 60_000;

const TABLE: CallTable<Calls> = {
  double: 'ask',
  doubleSoon: { withinMs: () => SOON_MS },
  doubleLate: { withinMs: () => LATE_MS },
  note: 'tell',
  take: { moves: ({ buffer }) => [buffer] },
};

const END = new Error('the other end is gone');

type Listener = Parameters<ChannelPort['on']>[1];
type Message = Parameters<Listener>[0];

/** A port whose messages arrive one by one, when the test says so. */
class HeldPort implements ChannelPort {
  readonly sent: Message[] = [];
  #listener: Listener = () => undefined;

  on(_: 'message', listener: Listener): void {
    this.#listener = listener;
  }

  postMessage(message: Message, moved: ArrayBuffer[]): void {
    this.sent.push(structuredClone(message, { transfer: moved }));
  }

  /** Lets the first message arrive at the other port. */
  deliver(to: HeldPort): void {
    const message = this.sent.shift();
    if (message !== undefined) to.#listener(message);
  }
}

/** The caller's end, and the other, whose calls do what `own` says. */
function connect(own: Partial<Calls>) {
  const [near, far] = [new HeldPort(), new HeldPort()];
  const channel = new Channel(near, TABLE);
  channel.serve({});
  new Channel(far, {}).serve(own);
  /** Until neither end has sent anything more. */
  const deliverAll = async () => {
    while (near.sent.length + far.sent.length > 0) {
      near.deliver(far);
      await setImmediate();
      far.deliver(near);
    }
  };
  return { channel, near, far, deliverAll };
}

describe('a call over a channel', () => {
  test('is carried out at the other end, which answers or fails with its message and code', async () => {
    const { port1, port2 } = new MessageChannel();
    const channel = new Channel<Calls>(port1, TABLE);
    channel.serve({});
    new Channel(port2, {}).serve({
      async double(value: number) {
        if (value < 0) throw Object.assign(new Error('port in use'), { code: 'EADDRINUSE' });
        return 2 * value;
      },
    });
    expect(await channel.calls.double(21)).toBe(42);
    await expect(channel.calls.double(-1)).rejects.toMatchObject({
      message: 'port in use',
      code: 'EADDRINUSE',
    });
    await expect(channel.calls.doubleSoon(1)).rejects.toThrow();
    port1.close();
  });

  test('that is answered too late rejects, and the answer is ignored', async () => {
    const { channel, far, deliverAll } = connect({
      double: async (value) => 2 * value,
      doubleSoon: async (value) => 2 * value,
    });
    await expect(channel.calls.doubleSoon(1)).rejects.toThrow('doubleSoon was not answered in time');
    const next = channel.calls.double(2);
    await deliverAll();
    expect(far.sent).toEqual([]);
    expect(await next).toBe(4);
  });

  test('that was answered while this thread stood still beyond the time is answered in time', async () => {
    const far = new Worker(
      `require('node:worker_threads').parentPort.on('message', ({ id, args: [value, state] }) => {
        require('node:worker_threads').parentPort.postMessage({ kind: 'result', id, result: 2 * value });
        Atomics.store(state, 0, 1);
        Atomics.notify(state, 0);
      })`,
      { eval: true },
    );
    await once(far, 'online');
    const channel = new Channel<StalledCalls>(far, { doubleSoon: { withinMs: () => SOON_MS } });
    channel.serve({});
    const state = new Int32Array(new SharedArrayBuffer(8));
    const doubled = channel.calls.doubleSoon(2, state);
    // Timers come next.
    await setImmediate();
    Atomics.wait(state, 0, 0);
    Atomics.wait(state, 1, 0, 2 * SOON_MS);
    expect(await doubled).toBe(4);
    await far.terminate();
  });

  test('that has ended leaves no timer behind', async () => {
    const deadlines = watchTimers('Timeout', LATE_MS);
    const { channel, near, far } = connect({ doubleLate: async (value) => 2 * value });
    const [answered, closed] = [channel.calls.doubleLate(1), channel.calls.doubleLate(2)];
    expect(deadlines).toMatchObject({ set: 2, left: 2 });
    near.deliver(far);
    await setImmediate();
    far.deliver(near);
    expect(await answered).toBe(2);
    expect(deadlines.left).toBe(1);
    channel.close(END);
    await expect(closed).rejects.toBe(END);
    expect(deadlines.left).toBe(0);
  });

  test('whose arguments cannot be sent rejects', async () => {
    const { channel } = connect({});
    await expect(channel.calls.double((() => 1) as never)).rejects.toThrow('could not be cloned');
  });

  test('moves the memory that its row names', async () => {
    const taken: Uint8Array[] = [];
    const { channel, deliverAll } = connect({ take: (bytes) => taken.push(bytes) });
    const bytes = new Uint8Array([1, 2, 3]);
    channel.calls.take(bytes);
    expect(bytes).toHaveLength(0);
    await deliverAll();
    expect(taken).toEqual([new Uint8Array([1, 2, 3])]);
  });

  test('one way: an error in it is an error of the thread that carries it out', () => {
    const { channel, near, far } = connect({
      note() {
        throw new Error('defect');
      },
    });
    channel.calls.note(1);
    expect(() => near.deliver(far)).toThrow('defect');
  });

  test('has its answer after what it made the other end send', async () => {
    const { port1, port2 } = new MessageChannel();
    const heard: string[] = [];
    const near = new Channel<Calls>(port1, TABLE);
    near.serve({ note: (value: number) => heard.push(`note ${value}`) });
    const far = new Channel<Pick<Calls, 'note'>>(port2, { note: 'tell' });
    far.serve({ double: async (value: number) => 2 * value }, () => far.calls.note(7));
    await near.calls.double(1).then((result) => heard.push(`result ${result}`));
    expect(heard).toEqual(['note 7', 'result 2']);
    port1.close();
  });
});

test('calls to a thread that is killed reject with its end, and so do later ones', async () => {
  const thread = new Worker(
    'const { parentPort } = require("node:worker_threads"); parentPort.once("message", () => parentPort.postMessage({ kind: "call", id: null, name: "note", args: [1] }));',
    { eval: true },
  );
  const isCalled = Promise.withResolvers<void>();
  const channel = new Channel<Calls>(thread, TABLE);
  channel.serve({ note: () => isCalled.resolve() });
  thread.once('exit', () => channel.close(END));
  const open = channel.calls.double(1);
  await isCalled.promise;
  void thread.terminate();
  await expect(open).rejects.toBe(END);
  await expect(channel.calls.double(1)).rejects.toBe(END);
  expect(() => channel.calls.note(1)).not.toThrow();
});

test('the single worker of a thread is called without messages, by the same names', async () => {
  const noted: number[] = [];
  const all = toDirectCalls<Calls>(TABLE, {
    double: async (value) => 2 * value,
    doubleSoon: () => Promise.reject(END),
    doubleLate: () => Promise.reject(END),
    note: (value) => void noted.push(value),
    take: () => undefined,
  });
  all.note(1);
  expect(noted).toEqual([1]);
  expect(await all.double(2)).toEqual({ results: [4], silent: [] });
  await expect(all.doubleSoon(2)).rejects.toBe(END);
  expect(Object.keys(all)).toEqual(Object.keys(toCalls(TABLE, () => () => undefined)));
});

const STEPS = fc.array(fc.constantFrom('ask', 'tell', 'deliver', 'answer', 'fail', 'deliverBack'), {
  maxLength: 60,
});

test('however messages, answers and the end of the other thread interleave, each call ends once, and calls keep their order', async () => {
  await fc.assert(
    fc.asyncProperty(STEPS, async (steps) => {
      const carriedOut: number[] = [];
      const open: { readonly value: number; readonly answer: PromiseWithResolvers<number> }[] = [];
      const { channel, near, far } = connect({
        note: (value) => void carriedOut.push(value),
        double(value) {
          carriedOut.push(value);
          const answer = Promise.withResolvers<number>();
          open.push({ value, answer });
          return answer.promise;
        },
      });
      const made: number[] = [];
      const heard = new Map<number, unknown[]>();
      const arrived = new Map<number, unknown>();
      for (const [value, step] of steps.entries()) {
        switch (step) {
          case 'tell':
            made.push(value);
            channel.calls.note(value);
            break;
          case 'ask': {
            made.push(value);
            const ends: unknown[] = [];
            heard.set(value, ends);
            const hear = (end: unknown) => ends.push(end);
            channel.calls.double(value).then(hear, ({ message }: Error) => hear(message));
            break;
          }
          case 'deliver':
            near.deliver(far);
            break;
          // The latest first: answers need not keep the order of calls.
          case 'answer': {
            const call = open.pop();
            call?.answer.resolve(2 * call.value);
            break;
          }
          case 'fail': {
            const call = open.pop();
            call?.answer.reject(new Error(`failed ${call.value}`));
            break;
          }
          case 'deliverBack': {
            const [message] = far.sent;
            if (message?.kind === 'result') arrived.set(Number(message.result) / 2, message.result);
            if (message?.kind === 'error') arrived.set(Number(message.message.slice(7)), message.message);
            far.deliver(near);
            break;
          }
        }
        await setImmediate();
      }
      channel.close(END);
      // What was on its way when the other thread died.
      while (far.sent.length > 0) far.deliver(near);
      await setImmediate();

      expect(carriedOut).toEqual(made.slice(0, carriedOut.length));
      for (const [value, ends] of heard) expect(ends).toEqual([arrived.get(value) ?? END.message]);
    }),
    { numRuns: runs(200) },
  );
});
