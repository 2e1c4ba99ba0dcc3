import type { Log } from '#otel/base';
import type { Drains } from './replica-drains.ts';

/** How long the drain state of a name is kept that is not configured any more. */
const KEPT_DAYS = 30;
export const KEPT_GONE_MS = KEPT_DAYS * 86_400_000;
/** How often it is noted which names are gone. */
export const LOOK_FOR_GONE_MS = 600_000;
/** How many names a log line has. */
const MAX_LOGGED = 20;

interface ForgetGoneCollaborators {
  readonly epochMs: () => number;
  readonly log: Log<'info'>;
}

/**
 * Forgets names that have been gone from the configuration and its sources for 30 days: replicas behind DNS or of
 * Kubernetes get ever new names. Ends when it is disposed. In a fleet its gateways forget them together.
 */
export function forgetGoneNames(drains: Drains, { epochMs, log }: ForgetGoneCollaborators): Disposable {
  const timer = setInterval(() => {
    const nowEpochMs = epochMs();
    const isOld = ([, since]: readonly [string, string]) => nowEpochMs - Date.parse(since) >= KEPT_GONE_MS;
    const forgotten = [...drains.gone].filter(isOld).map(([name]) => name);
    drains.noteGone(nowEpochMs);
    if (forgotten.length === 0) return;
    drains.forget(forgotten);
    logForgotten(forgotten, log);
  }, LOOK_FOR_GONE_MS).unref();
  return { [Symbol.dispose]: () => clearInterval(timer) };
}

/** Says which names were forgotten. */
export function logForgotten(names: readonly string[], log: Log<'info'>): void {
  log.info(
    { replicas: names.slice(0, MAX_LOGGED), count: names.length, days: KEPT_DAYS },
    'drain states forgotten: no replica has had these names for so long',
  );
}
