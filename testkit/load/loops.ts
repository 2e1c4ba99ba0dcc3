import { setTimeout as sleep } from 'node:timers/promises';

/** How often an open loop looks what is due. */
const TICK_MS = 5;

/** A closed loop: `clientCount` clients together send `requestCount` requests, each client one at a time. */
export async function sendInClosedLoop(
  clientCount: number,
  requestCount: number,
  send: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const runClient = async () => {
    while (next < requestCount) await send(next++);
  };
  await Promise.all(Array.from({ length: clientCount }, runClient));
}

/** What an open loop begins, and how far it may go. */
export interface OpenLoop {
  readonly perSecond: number;
  /** Requests that may be sent at once after this process paused. */
  readonly maxBurst: number;
  /** Whether one more may be open. On a machine too slow for the rate, requests would only pile up. */
  hasRoom(): boolean;
  /** Begins one request. */
  begin(): void;
  isStopped(): boolean;
}

/** An open loop: begins requests at a fixed rate, whether or not earlier ones have ended. Resolves when it is stopped. */
export async function sendInOpenLoop(loop: OpenLoop): Promise<void> {
  let due = 0;
  let lastMs = performance.now();
  while (!loop.isStopped()) {
    const nowMs = performance.now();
    due = Math.min(due + ((nowMs - lastMs) / 1000) * loop.perSecond, loop.maxBurst);
    lastMs = nowMs;
    for (; due >= 1 && loop.hasRoom(); due -= 1) loop.begin();
    await sleep(TICK_MS);
  }
}
