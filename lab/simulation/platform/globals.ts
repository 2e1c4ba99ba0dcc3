import { toUuid } from '../engine/chance.ts';
import { createAtomics } from './futexes.ts';
import type { CurrentThread } from './thread.ts';
import type { Timers } from './timers.ts';

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

type TimerArguments = Parameters<Timers['setTimeout']>;
type ImmediateArguments = Parameters<Timers['setImmediate']>;

/** Creates the globals of the threads that run one copy of the code, one after another. */
export function createGlobals(current: CurrentThread): ThreadGlobals {
  const timers = {
    setTimeout: (...args: TimerArguments) => current().timers.setTimeout(...args),
    clearTimeout: (timer?: unknown) => current().timers.clearTimeout(timer),
    setInterval: (...args: TimerArguments) => current().timers.setInterval(...args),
    clearInterval: (timer?: unknown) => current().timers.clearTimeout(timer),
    setImmediate: (...args: ImmediateArguments) => current().timers.setImmediate(...args),
    clearImmediate: (immediate?: unknown) => current().timers.clearImmediate(immediate),
  };
  class SimulatedDate extends Date {
    constructor(...args: readonly unknown[]) {
      super(...((args.length === 0 ? [current().machine.epochMs] : args) as [number]));
    }

    static override now(): number {
      return Math.trunc(current().machine.epochMs);
    }
  }
  const performance = {
    now: () => current().nowMs,
    get timeOrigin() {
      return current().machine.epochMs - current().nowMs;
    },
    eventLoopUtilization: () => ({ active: 0, idle: current().nowMs, utilization: 0 }),
    mark: () => undefined,
    measure: () => undefined,
    markResourceTiming: () => undefined,
    nodeTiming: { idleTime: 0, uvMetricsInfo: { loopCount: 0, events: 0, eventsWaiting: 0 } },
  };
  const simulatedProcess = createProcess(current);
  const simulatedMath: Math = Object.create(Math, {
    random: { value: () => current().chance.fraction() },
  });
  const replaced: Record<string, unknown> = {
    ...timers,
    Date: SimulatedDate,
    performance,
    process: simulatedProcess,
    Math: simulatedMath,
    crypto: {
      getRandomValues: (bytes: Uint8Array) => current().chance.fill(bytes),
      randomUUID: () => toUuid(current().chance.fill(Buffer.alloc(16))),
    },
    AbortSignal: createAbortSignal(current),
    Atomics: createAtomics(current),
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
function createAbortSignal(current: CurrentThread): typeof AbortSignal {
  const timeout = (delayMs: number): AbortSignal => {
    const controller = new AbortController();
    const abort = () =>
      controller.abort(new DOMException('The operation was aborted due to timeout', 'TimeoutError'));
    current().timers.setTimeout(abort, delayMs).unref();
    return controller.signal;
  };
  return new Proxy(AbortSignal, {
    get: (target, name) => (name === 'timeout' ? timeout : Reflect.get(target, name)),
  });
}

function createProcess(current: CurrentThread): object {
  const events = (
    ['on', 'once', 'off', 'emit', 'removeListener', 'removeAllListeners', 'listenerCount'] as const
  ).map((name) => {
    const value = (...args: unknown[]) => {
      const { processEvents } = current();
      return (processEvents[name] as (...args: unknown[]) => unknown).apply(processEvents, args);
    };
    return [name, { value }] as const;
  });
  return Object.create(process, {
    ...Object.fromEntries(events),
    env: { value: {} },
    uptime: { value: () => current().nowMs / 1000 },
    hrtime: {
      value: Object.assign(() => toHrTime(current().nowMs), {
        bigint: () => BigInt(Math.round(current().nowMs * 1e6)),
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
