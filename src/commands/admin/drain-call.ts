import { setTimeout as sleep } from 'node:timers/promises';
import { parseDuration } from '../../config/values.ts';
import { type Invocation, type TextSink, UsageError } from '../command-line/command.ts';
import { type AdminClient, adminOptions, memberOf, toOneLine, UnreachableError } from './client.ts';

/** The options that `gateway drain` and `gateway undrain` have in common. */
export const drainOptions = {
  ...adminOptions,
  reason: { type: 'string' },
  wait: { type: 'boolean' },
  timeout: { type: 'string' },
} as const;

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 5_000;

/** One drain or undrain. */
export interface DrainCall {
  readonly name: string;
  readonly action: 'drain' | 'undrain';
  readonly reason?: string | undefined;
  readonly unlessLast?: boolean | undefined;
}

/** How long a gateway that does not answer is asked again. */
interface Patience {
  readonly patienceMs: number;
  /** Ends it. */
  readonly signal: AbortSignal;
  /** Told of each call that was not answered. */
  readonly onAway: () => void;
}

/** Drains or undrains: doing so again does no harm, so that a call without an answer is repeated. */
export async function callDrain(
  client: AdminClient,
  { name, action, reason, unlessLast = false }: DrainCall,
  patience: Patience | null,
): Promise<unknown> {
  const query = new URLSearchParams({
    ...(reason === undefined ? {} : { reason }),
    ...(unlessLast ? { unless_last: 'true' } : {}),
  });
  const path = `/admin/replicas/${encodeURIComponent(name)}/${action}`;
  const call = () => client.call('POST', query.size === 0 ? path : `${path}?${query}`, patience?.signal);
  return patience === null ? await call() : await patiently(call, patience);
}

async function patiently<T>(call: () => Promise<T>, { patienceMs, signal, onAway }: Patience): Promise<T> {
  const endMs = performance.now() + patienceMs;
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    try {
      return await call();
    } catch (error) {
      const leftMs = endMs - performance.now();
      if (!(error instanceof UnreachableError) || signal.aborted || leftMs <= 0) throw error;
      onAway();
      await sleep(Math.min(pauseMs, leftMs), undefined, { signal }).catch(() => undefined);
    }
  }
}

/** The patience of a command that waits. Reading its signal takes Ctrl-C over: nobody else should. */
export function toPatience({ stderr, signals }: Invocation, patienceMs: number): Patience {
  return {
    patienceMs,
    signal: signals.shutdown,
    onAway: () => stderr.write('gateway: the admin API does not answer: trying again\n'),
  };
}

/** The time-out of a wait. Throws a UsageError on one that is no duration, and on one without a wait. */
export function toTimeoutMs(
  { wait, timeout }: { readonly wait?: boolean; readonly timeout?: string },
  usual: string,
): number {
  if (timeout !== undefined && !wait) throw new UsageError("option '--timeout' needs '--wait'");
  const timeoutMs = parseDuration(timeout ?? usual);
  if (timeoutMs === null) throw new UsageError("option '--timeout' needs a duration such as 30s or 10m");
  return timeoutMs;
}

/** Tells of what the answer warns of. Returns whether the change is on disk. */
export function tellWarnings(stderr: TextSink, name: string, answer: unknown): boolean {
  const warning = memberOf(answer, 'warning');
  if (typeof warning === 'string') stderr.write(`gateway: warning: ${toOneLine(warning)}\n`);
  const isStored = memberOf(answer, 'stored') !== false;
  if (!isStored) stderr.write(`gateway: ${name}: not stored, so that a restart of the gateway forgets it\n`);
  return isStored;
}

/** Prints an answer of the admin API as it is. */
export function printJson(stdout: TextSink, answer: unknown): void {
  stdout.write(`${JSON.stringify(answer, null, 2)}\n`);
}

/** Whether a later call for the opposite, on another gateway of the fleet, holds instead: the warning says so. */
export function isOvertaken(answer: unknown): boolean {
  return memberOf(answer, 'overtaken') === true;
}
