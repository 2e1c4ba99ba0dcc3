import { toUuid } from '../engine/chance.ts';
import type { SimulatedThread } from './thread.ts';

/** The globals of a thread that depend on time, chance or the process. */
export interface ThreadGlobals {
  readonly timers: Readonly<Record<string, unknown>>;
  readonly performance: object;
  readonly process: object;
  /** All of them by name, and the object that `globalThis` names. */
  readonly all: Readonly<Record<string, unknown>>;
}

/** References that are never collected: what garbage collection does is no part of a simulation. */
class StrongRef<T> {
  readonly #value: T;

  constructor(value: T) {
    this.#value = value;
  }

  deref(): T {
    return this.#value;
  }
}

class NoFinalization {
  register(): void {}

  unregister(): void {}
}

/** Creates the globals of a thread. */
export function createGlobals(thread: SimulatedThread): ThreadGlobals {
  const { timers: clock, chance, machine } = thread;
  const timers = {
    setTimeout: clock.setTimeout,
    clearTimeout: clock.clearTimeout,
    setInterval: clock.setInterval,
    clearInterval: clock.clearTimeout,
    setImmediate: clock.setImmediate,
    clearImmediate: clock.clearImmediate,
  };
  class SimulatedDate extends Date {
    constructor(...args: readonly unknown[]) {
      super(...((args.length === 0 ? [machine.epochMs] : args) as [number]));
    }

    static override now(): number {
      return Math.trunc(machine.epochMs);
    }
  }
  const performance = {
    now: () => thread.nowMs,
    timeOrigin: machine.epochMs - thread.nowMs,
    eventLoopUtilization: () => ({ active: 0, idle: thread.nowMs, utilization: 0 }),
    mark: () => undefined,
    measure: () => undefined,
    markResourceTiming: () => undefined,
    nodeTiming: { idleTime: 0, uvMetricsInfo: { loopCount: 0, events: 0, eventsWaiting: 0 } },
  };
  const simulatedProcess = createProcess(thread);
  const simulatedMath: Math = Object.create(Math, { random: { value: () => chance.fraction() } });
  const replaced: Record<string, unknown> = {
    ...timers,
    Date: SimulatedDate,
    performance,
    process: simulatedProcess,
    Math: simulatedMath,
    crypto: {
      getRandomValues: (bytes: Uint8Array) => chance.fill(bytes),
      randomUUID: () => toUuid(chance.fill(Buffer.alloc(16))),
    },
    AbortSignal: createAbortSignal(thread),
    Atomics: machine.futexes.createAtomics(thread),
    WeakRef: StrongRef,
    FinalizationRegistry: NoFinalization,
  };
  // Symbols that packages keep in globalThis are those of the thread.
  const own: Record<string, unknown> = Object.create(globalThis);
  for (const [name, value] of Object.entries(replaced)) {
    Object.defineProperty(own, name, { value, writable: true, configurable: true });
  }
  return {
    timers,
    performance,
    process: simulatedProcess,
    all: { ...replaced, globalThis: own, global: own },
  };
}

/** `AbortSignal`, whose time-outs Node runs on timers that cannot be replaced. */
function createAbortSignal({ timers }: SimulatedThread): typeof AbortSignal {
  const timeout = (delayMs: number): AbortSignal => {
    const controller = new AbortController();
    const timedOut = new DOMException('The operation was aborted due to timeout', 'TimeoutError');
    timers.setTimeout(() => controller.abort(timedOut), delayMs).unref();
    return controller.signal;
  };
  return new Proxy(AbortSignal, {
    get: (target, name) => (name === 'timeout' ? timeout : Reflect.get(target, name)),
  });
}

function createProcess(thread: SimulatedThread): object {
  const { processEvents } = thread;
  const events = (
    ['on', 'once', 'off', 'emit', 'removeListener', 'removeAllListeners', 'listenerCount'] as const
  ).map((name) => [name, { value: processEvents[name].bind(processEvents) }] as const);
  return Object.create(process, {
    ...Object.fromEntries(events),
    env: { value: {} },
    uptime: { value: () => thread.nowMs / 1000 },
    hrtime: {
      value: Object.assign(() => toHrTime(thread.nowMs), {
        bigint: () => BigInt(Math.round(thread.nowMs * 1e6)),
      }),
    },
    emitWarning: { value: () => undefined },
    exit: {
      value: () => {
        throw new Error('a thread calls process.exit');
      },
    },
  });
}

function toHrTime(ms: number): [number, number] {
  const nanoseconds = Math.round(ms * 1e6);
  return [Math.trunc(nanoseconds / 1e9), nanoseconds % 1e9];
}
