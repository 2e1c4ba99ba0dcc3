import { type AdminClient, memberOf, openAdmin, toOneLine } from './admin/client.ts';
import {
  callDrain,
  drainOptions,
  isOvertaken,
  printJson,
  tellWarnings,
  toPatience,
  toTimeoutMs,
} from './admin/drain-call.ts';
import type { Invocation } from './command-line/command.ts';
import { parseOptions } from './command-line/options.ts';
import { createLiveLine } from './terminal/progress-line.ts';
import { type Standing, toStanding, type WatchEnd, watchDrain } from './watch-drain.ts';

const DRAIN_OPTIONS = { ...drainOptions, 'unless-last': { type: 'boolean' } } as const;

const DEFAULT_TIMEOUT = '10m';

/** How long a gateway that does not answer the drain is asked again, with `--wait`. */
const PATIENCE_MS = 30_000;

/**
 * `gateway drain NAME`: a replica gets no new requests. With `--wait` it watches what is in flight end: exit code 0
 * only when the replica is safe to stop. With `--unless-last` it is refused where no other replica answers.
 */
export async function drain(invocation: Invocation): Promise<number> {
  const { args, env, stdout, stderr } = invocation;
  const { values, positionals } = parseOptions(args, DRAIN_OPTIONS, ['NAME']);
  const timeoutMs = toTimeoutMs(values, DEFAULT_TIMEOUT);
  const client = await openAdmin(values, env);
  const [name = ''] = positionals;
  const call = { name, action: 'drain', reason: values.reason, unlessLast: values['unless-last'] } as const;
  const answer = await callDrain(
    client,
    call,
    values.wait ? toPatience(invocation, Math.min(timeoutMs, PATIENCE_MS)) : null,
  );
  const isStored = tellWarnings(stderr, name, answer);
  if (isOvertaken(answer)) {
    if (values.json) printJson(stdout, answer);
    return 1;
  }
  if (!values.json) stdout.write(`${toDrainSentence(name, answer)}\n`);
  // One that a restart of the gateway forgets is never safe.
  if (!values.wait || !isStored) {
    if (values.json) printJson(stdout, answer);
    return isStored ? 0 : 1;
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
