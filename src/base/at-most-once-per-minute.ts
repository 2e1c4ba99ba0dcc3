const MINUTE_MS = 60_000;

/** Wraps `act` so that it runs on the first call and then at most once per minute: for log lines that clients cause. */
export function atMostOncePerMinute<T extends unknown[]>(
  act: (...values: T) => void,
): (...values: T) => void {
  let nextMs = Number.NEGATIVE_INFINITY;
  return (...values) => {
    const nowMs = performance.now();
    if (nowMs < nextMs) return;
    nextMs = nowMs + MINUTE_MS;
    act(...values);
  };
}
