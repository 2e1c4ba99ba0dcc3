import { onTestFinished, vi } from 'vitest';

/** Timers of one length. Those that others set do not count. */
export interface WatchedTimers {
  /** How many have been set. */
  readonly set: number;
  /** How many of them have not been cleared. */
  readonly left: number;
}

/** Watches the timers of this length that are set from now on, until the test has finished. */
export function watchTimers(kind: 'Timeout' | 'Interval', ms: number): WatchedTimers {
  const set = vi.spyOn(globalThis, `set${kind}`);
  const clear = vi.spyOn(globalThis, `clear${kind}`);
  onTestFinished(() => {
    set.mockRestore();
    clear.mockRestore();
  });
  const timers = () =>
    set.mock.calls.flatMap(([, given], index) => (given === ms ? [set.mock.results[index]?.value] : []));
  return {
    get set() {
      return timers().length;
    },
    get left() {
      return timers().filter((timer) => clear.mock.calls.every(([cleared]) => cleared !== timer)).length;
    },
  };
}
