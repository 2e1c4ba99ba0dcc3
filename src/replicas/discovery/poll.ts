/** Work that is repeated until it is stopped. */
export interface Poll {
  stop(): void;
}

/**
 * Repeats work that never rejects. Each pause varies by up to a tenth, so that gateways that started together do not
 * stay in step.
 */
export function startPoll(work: () => Promise<void>, intervalMs: number): Poll {
  let timer: NodeJS.Timeout;
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
      clearTimeout(timer);
    },
  };
}
