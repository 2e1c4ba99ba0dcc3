import type { Drains } from './drains.ts';

/** How long the drain state of a name is kept that is not configured any more. */
const KEPT_DAYS = 30;
const DAY_MS = 86_400_000;
const LOOK_EVERY_MS = 600_000;
/** How many names a log line has. */
const MAX_LOGGED = 20;

interface ForgetGoneCollaborators {
  readonly epochMs: () => number;
  readonly log: { info(fields: object, message: string): void };
}

/**
 * Forgets names that have been gone from the configuration and its sources for 30 days: replicas behind DNS or of
 * Kubernetes get ever new names. Ends when it is disposed.
 */
export function forgetGoneNames(drains: Drains, { epochMs, log }: ForgetGoneCollaborators): Disposable {
  const timer = setInterval(() => {
    const forgotten = drains.forgetGone(epochMs(), KEPT_DAYS * DAY_MS);
    if (forgotten.length === 0) return;
    log.info(
      { replicas: forgotten.slice(0, MAX_LOGGED), count: forgotten.length, days: KEPT_DAYS },
      'drain states forgotten: no replica has had these names for so long',
    );
  }, LOOK_EVERY_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}
