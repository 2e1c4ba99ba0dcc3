const MINUTE_MS = 60_000;

/** Wraps `act` so that it runs on the first call and then at most once per minute: for log lines that clients cause. */
export function atMostOncePerMinute(act: () => void): () => void {
  let nextMs = Number.NEGATIVE_INFINITY;
  return () => {
    const nowMs = performance.now();
    if (nowMs < nextMs) return;
    nextMs = nowMs + MINUTE_MS;
    act();
  };
}
