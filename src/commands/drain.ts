import { parseDuration } from '../config/values.ts';
import { type AdminClient, adminOptions, memberOf, openAdmin, toOneLine } from './admin-client.ts';
import { type Invocation, type TextSink, UsageError } from './command.ts';
import { createLiveLine } from './live-line.ts';
import { parseOptions } from './options.ts';
import { type Standing, toStanding, type WatchEnd, watchDrain } from './watch-drain.ts';

const UNDRAIN_OPTIONS = { ...adminOptions, reason: { type: 'string' } } as const;

const DRAIN_OPTIONS = {
  ...UNDRAIN_OPTIONS,
  wait: { type: 'boolean' },
  timeout: { type: 'string' },
} as const;

const DEFAULT_TIMEOUT = '10m';

/**
 * `gateway drain NAME`: a replica gets no new requests. With `--wait` it watches what is in flight end: exit code 0
 * only when the replica is safe to stop.
 */
export async function drain(invocation: Invocation): Promise<number> {
  const { args, env, stdout, stderr } = invocation;
  const { values, positionals } = parseOptions(args, DRAIN_OPTIONS, ['NAME']);
  const timeoutMs = toTimeoutMs(values);
  const client = await openAdmin(values, env);
  const [name = ''] = positionals;
  const answer = await change(client, { name, action: 'drain', reason: values.reason });
  warn(stderr, answer);
  if (isOvertaken(answer)) {
    if (values.json) printJson(stdout, answer);
    return 1;
  }
  if (!values.json) stdout.write(`${toDrainSentence(name, answer)}\n`);
  if (!values.wait) {
    if (values.json) printJson(stdout, answer);
    return 0;
  }
  const isQuiet = values.json === true;
  const { kind, standing } = await watch(invocation, client, { name, timeoutMs, answer, isQuiet });
  if (values.json) printJson(stdout, { ...(answer as object), replica: standing.view });
  if (kind === 'safe') {
    if (!values.json) stdout.write(`${name} is safe to stop\n`);
    return 0;
  }
  const problem = { kind, standing, timeout: values.timeout ?? DEFAULT_TIMEOUT };
  stderr.write(`gateway: ${toSentence(name, problem)}\n`);
  return 1;
}

/** `gateway undrain NAME`: a drained replica takes its turns again. */
export async function undrain({ args, env, stdout, stderr }: Invocation): Promise<number> {
  const { values, positionals } = parseOptions(args, UNDRAIN_OPTIONS, ['NAME']);
  const client = await openAdmin(values, env);
  const [name = ''] = positionals;
  const answer = await change(client, { name, action: 'undrain', reason: values.reason });
  warn(stderr, answer);
  if (values.json) printJson(stdout, answer);
  else if (!isOvertaken(answer)) {
    const wasDrained = memberOf(answer, 'was_drained') === true;
    stdout.write(`${name} takes requests ${wasDrained ? 'again' : '(it was not drained)'}\n`);
  }
  return isOvertaken(answer) ? 1 : 0;
}

/** Whether a later call for the opposite, on another gateway of the fleet, holds instead: the warning says so. */
function isOvertaken(answer: unknown): boolean {
  return memberOf(answer, 'overtaken') === true;
}

function toTimeoutMs({ wait, timeout }: { readonly wait?: boolean; readonly timeout?: string }): number {
  if (timeout !== undefined && !wait) throw new UsageError("option '--timeout' needs '--wait'");
  const timeoutMs = parseDuration(timeout ?? DEFAULT_TIMEOUT);
  if (timeoutMs === null) throw new UsageError("option '--timeout' needs a duration such as 30s or 10m");
  return timeoutMs;
}

function change(
  client: AdminClient,
  {
    name,
    action,
    reason,
  }: { readonly name: string; readonly action: string; readonly reason?: string | undefined },
): Promise<unknown> {
  const query = reason === undefined ? '' : `?${new URLSearchParams({ reason })}`;
  return client.call('POST', `/admin/replicas/${encodeURIComponent(name)}/${action}${query}`);
}

/** Watches the drain, telling of it on a live line. The first signal ends it. */
async function watch(
  { stdout, signals }: Invocation,
  client: AdminClient,
  given: {
    readonly name: string;
    readonly timeoutMs: number;
    readonly answer: unknown;
    readonly isQuiet: boolean;
  },
): Promise<WatchEnd> {
  const { name, timeoutMs, answer, isQuiet } = given;
  const line = createLiveLine(stdout);
  try {
    return await watchDrain(client, {
      ...{ name, timeoutMs, signal: signals.shutdown, first: toStanding(memberOf(answer, 'replica')) },
      onLook: (standing) => {
        if (!isQuiet)
          line.show(`${name}: ${standing === null ? 'the gateway does not answer' : toState(standing)}`);
      },
    });
  } finally {
    line.end();
  }
}

function toDrainSentence(name: string, answer: unknown): string {
  const wasDrained = memberOf(answer, 'was_drained') === true;
  const state = toState(toStanding(memberOf(answer, 'replica')));
  return `${name} ${wasDrained ? 'was drained before' : 'is drained'}: ${state}`;
}

function toState({ inflight, isSafeToStop, unconfirmed }: Standing): string {
  if (inflight > 0) return `${inflight} in flight`;
  if (unconfirmed.length > 0)
    return `nothing in flight as far as is known, not confirmed by ${toNames(unconfirmed)}`;
  return isSafeToStop === null ? 'nothing in flight here, but not confirmed yet' : 'nothing in flight';
}

function toNames(names: readonly string[]): string {
  return toOneLine(names.join(', '));
}

/** How a wait ended that did not end with a replica that is safe to stop. */
interface WaitProblem {
  readonly kind: Exclude<WatchEnd['kind'], 'safe'>;
  readonly standing: Standing;
  /** As it was given. */
  readonly timeout: string;
}

function toSentence(name: string, { kind, standing, timeout }: WaitProblem): string {
  const drained = `${name} stays drained, with ${toState(standing)}`;
  switch (kind) {
    case 'timed_out':
      return `not safe to stop after ${timeout}: ${drained}`;
    case 'interrupted':
      return `stopped waiting: ${drained} ('gateway undrain ${name}' takes it back)`;
    case 'undrained':
      return `${name} takes requests again: it was undrained while this command waited`;
    case 'removed':
      return `${name} is not among the replicas any more`;
  }
}

function warn(stderr: TextSink, answer: unknown): void {
  const warning = memberOf(answer, 'warning');
  if (typeof warning === 'string') stderr.write(`gateway: warning: ${toOneLine(warning)}\n`);
}

function printJson(stdout: TextSink, answer: unknown): void {
  stdout.write(`${JSON.stringify(answer, null, 2)}\n`);
}
