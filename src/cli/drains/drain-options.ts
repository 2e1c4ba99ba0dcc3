import { once } from 'node:events';
import { memberOf } from '#base/parsed';
import { type callDrain, RefusedError } from '#cli/admin-client';
import { type ByteSource, type Invocation, type TextSink, UsageError } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import { parseDuration } from '#config/values';

/** The retries of a command with `--wait`. It reads `signals.shutdown`, which takes Ctrl-C over from Node. */
export function toRetryPolicy(
  { stderr, signals }: Invocation,
  maxMs: number,
): NonNullable<Parameters<typeof callDrain>[2]> {
  return {
    maxMs,
    signal: signals.shutdown,
    onRetry: () => stderr.write('gateway: the admin API does not answer: trying again\n'),
  };
}

/** Reads `--ramp`. Throws a UsageError. */
export function checkRamp(ramp: string | undefined): void {
  if (ramp !== undefined && parseDuration(ramp) === null) {
    throw new UsageError("option '--ramp' needs a duration such as 60s or 5m");
  }
}

/** Reads `--timeout`. Throws a UsageError if it is not a duration, or if `--wait` is not given. */
export function toTimeoutMs(
  { wait, timeout }: { readonly wait?: boolean; readonly timeout?: string },
  byDefault: string,
): number {
  if (timeout !== undefined && !wait) throw new UsageError("option '--timeout' needs '--wait'");
  const timeoutMs = parseDuration(timeout ?? byDefault);
  if (timeoutMs === null) throw new UsageError("option '--timeout' needs a duration such as 30s or 10m");
  return timeoutMs;
}

/** Prints the warnings of an answer. Returns whether the change is stored on disk. */
export function printWarnings(stderr: TextSink, name: string, answer: unknown): boolean {
  const warning = memberOf(answer, 'warning');
  if (typeof warning === 'string') stderr.write(`gateway: warning: ${toOneLine(warning)}\n`);
  const isStored = memberOf(answer, 'stored') !== false;
  if (!isStored)
    stderr.write(`gateway: ${name}: the change is not stored: a restart of the gateway forgets it\n`);
  return isStored;
}

/** Whether a later, opposite call took effect instead. The warning says so. */
export function isOvertaken(answer: unknown): boolean {
  return memberOf(answer, 'overtaken') === true;
}

/**
 * Calls a drain. If it is refused because the replica is the last one that answers, asks whether to call it again by
 * force; where nobody can be asked, says how. Null: nothing is drained. `signal` ends the question.
 */
export async function callOrAsk(
  invocation: Invocation,
  { mayAsk, signal }: { readonly mayAsk: boolean; readonly signal?: AbortSignal | undefined },
  call: (isForced: boolean) => Promise<unknown>,
): Promise<unknown> {
  const { stdin, stdout, stderr } = invocation;
  try {
    return await call(false);
  } catch (error) {
    if (!(error instanceof RefusedError) || error.code !== 'last_replica') throw error;
    stderr.write(`gateway: ${toOneLine(error.message)}\n`);
  }
  // Only a terminal has a raw mode.
  if (!mayAsk || stdin.setRawMode === undefined || stdout.isTTY !== true) {
    stderr.write('gateway: to drain it anyway: --force\n');
    return null;
  }
  stdout.write('Drain it anyway? [y/N] ');
  const line = await Promise.race([readLine(stdin), ...(signal === undefined ? [] : [untilAborted(signal)])]);
  return line.trim().toLowerCase() === 'y' ? await call(true) : null;
}

/** Reads what somebody types up to the first Enter, or to the end of the input. */
async function readLine(keyboard: ByteSource): Promise<string> {
  let typed = '';
  for await (const bytes of keyboard) {
    typed += Buffer.from(bytes).toString('latin1');
    if (typed.includes('\n')) break;
  }
  return typed;
}

/** Resolves with an empty line when the signal aborts. */
async function untilAborted(signal: AbortSignal): Promise<string> {
  if (!signal.aborted) await once(signal, 'abort');
  return '';
}
