/** Work that is done again and again, until it is stopped. */
export interface Repeated {
  stop(): void;
}

/**
 * Does the work again, each time so long after the last time was over, give or take a tenth: gateways that were
 * started together do not ask at the same moments for ever. The work must not reject.
 */
export function repeat(work: () => Promise<void>, intervalMs: number): Repeated {
  let timer: NodeJS.Timeout | null = null;
  let isStopped = false;

  function schedule(): void {
    timer = setTimeout(() => void run(), intervalMs * (0.9 + 0.2 * Math.random()));
    timer.unref();
  }

  async function run(): Promise<void> {
    await work();
    if (!isStopped) schedule();
  }

  schedule();
  return {
    stop() {
      isStopped = true;
      if (timer !== null) clearTimeout(timer);
    },
  };
}
