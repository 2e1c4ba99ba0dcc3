import { setTimeout as sleep } from 'node:timers/promises';
import { itemsOf, memberOf } from '#base/parsed';
import { type AdminClient, callDrain, openAdmin, RefusedError, UnreachableError } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import { printJson } from '../print-json.ts';
import { callOrAsk, isOvertaken, printWarnings, toRetryPolicy, toTimeoutMs } from './drain-options.ts';
import { createProgressLine } from './progress-line.ts';

const DEFAULT_TIMEOUT = '10m';

/** How long `--wait` repeats a drain that the gateway does not answer. */
const MAX_RETRY_MS = 30_000;

const POLL_INTERVAL_MS = 250;

/**
 * `gateway drain NAME`: sends no new requests to a replica. With `--wait` it waits for the requests in flight, and
 * exits with 0 only when the replica is safe to stop. If no other replica of one of its models answers it asks first,
 * or drains nothing where nobody can be asked, and with `--unless-last`. With `--force` it drains in any case.
 */
export async function drain(invocation: Invocation): Promise<number> {
  const { args, env, stdout, stderr } = invocation;
  const { values, positionals } = parseOptions(args, COMMANDS.drain.options, ['NAME']);
  const timeoutMs = toTimeoutMs(values, DEFAULT_TIMEOUT);
  if (values.force && values['unless-last']) {
    throw new UsageError("options '--force' and '--unless-last' exclude each other");
  }
  const client = await openAdmin(values, env, 'operator');
  const [name = ''] = positionals;
  const mayAsk = !values['unless-last'] && !values.json;
  const retry = values.wait ? toRetryPolicy(invocation, Math.min(timeoutMs, MAX_RETRY_MS)) : null;
  const answer = await callOrAsk(invocation, { mayAsk, signal: retry?.signal }, (isForced) => {
    const unlessLast = !isForced && !values.force;
    return callDrain(client, { name, action: 'drain', reason: values.reason, unlessLast }, retry);
  });
  if (answer === null) return 1;
  const isStored = printWarnings(stderr, name, answer);
  if (isOvertaken(answer)) {
    if (values.json) printJson(stdout, answer);
    return 1;
  }
  if (!values.json) stdout.write(`${toDrainSentence(name, answer)}\n`);
  // A drain that a restart of the gateway forgets is never safe.
  if (!values.wait || !isStored) {
    if (values.json) printJson(stdout, answer);
    return isStored ? 0 : 1;
  }
  const given = { name, timeoutMs, first: toStatus(memberOf(answer, 'replica')) };
  const { kind, status } = await waitWithProgress(invocation, client, given, values.json === true);
  if (values.json) printJson(stdout, { ...(answer as object), replica: status.view });
  if (kind === 'safe') {
    if (!values.json) stdout.write(`${name} is safe to stop\n`);
    return 0;
  }
  const problem = { kind, status, timeout: values.timeout ?? DEFAULT_TIMEOUT };
  stderr.write(`gateway: ${toProblemSentence(name, problem)}\n`);
  return 1;
}

/** Waits for the drain and shows its progress. The first signal ends the wait. */
async function waitWithProgress(
  { stdout, signals }: Invocation,
  client: AdminClient,
  given: Pick<DrainWait, 'name' | 'timeoutMs' | 'first'>,
  isQuiet: boolean,
): Promise<DrainWaitEnd> {
  const line = createProgressLine(stdout);
  try {
    return await waitUntilSafe(client, {
      ...given,
      signal: signals.shutdown,
      onPoll: (status) => {
        if (!isQuiet)
          line.show(`${given.name}: ${status === null ? 'the gateway does not answer' : toText(status)}`);
      },
    });
  } finally {
    line.end();
  }
}

/** What the admin API last said of the replica. */
interface DrainStatus {
  readonly isDrained: boolean;
  readonly inflight: number;
  /** Responses in the background, and those of them of which it is not known whether they have ended. */
  readonly background: number;
  readonly backgroundUnknown: number;
  /** Null: the gateway cannot know. */
  readonly isSafeToStop: boolean | null;
  /** The gateways of the fleet that have not confirmed the drain. */
  readonly unconfirmed: readonly string[];
  /** The replica as the admin API shows it. */
  readonly view: unknown;
}

/** How a wait ended, and the last status of the replica. */
interface DrainWaitEnd {
  readonly kind: 'safe' | 'timed_out' | 'interrupted' | 'undrained' | 'removed';
  readonly status: DrainStatus;
}

interface DrainWait {
  readonly name: string;
  readonly timeoutMs: number;
  /** Ends the wait. */
  readonly signal: AbortSignal;
  /** The status in the answer to the drain. */
  readonly first: DrainStatus;
  /** Called after each poll; null: the gateway did not answer. */
  readonly onPoll: (status: DrainStatus | null) => void;
}

/**
 * Polls a drained replica until it is safe to stop or cannot become so. A gateway that does not answer is polled again,
 * because it may be restarting. Rejects with a StartError when the gateway refuses.
 */
async function waitUntilSafe(client: AdminClient, wait: DrainWait): Promise<DrainWaitEnd> {
  const endMs = performance.now() + wait.timeoutMs;
  let status = wait.first;
  let isRemoving = memberOf(status.view, 'removing') === true;
  for (;;) {
    if (status.isSafeToStop === true) return { kind: 'safe', status };
    if (!status.isDrained) return { kind: 'undrained', status };
    if (wait.signal.aborted) return { kind: 'interrupted', status };
    if (performance.now() >= endMs) return { kind: 'timed_out', status };
    await sleep(POLL_INTERVAL_MS, undefined, { signal: wait.signal }).catch(() => undefined);
    const polled = await poll(client, wait);
    // What is being removed is listed until nothing is in flight on it.
    if (polled === 'removed') {
      const view = isRemoving ? { ...(status.view as object), ...IDLE } : status.view;
      return { kind: isRemoving ? 'safe' : 'removed', status: { ...status, view } };
    }
    isRemoving = memberOf(polled?.view, 'removing') === true;
    if (!wait.signal.aborted) wait.onPoll(polled);
    status = polled ?? status;
  }
}

const IDLE = { inflight: 0, background: 0, background_unknown: 0, safe_to_stop: true };

/** Null when the gateway does not answer. */
async function poll(
  client: AdminClient,
  { name, signal }: DrainWait,
): Promise<DrainStatus | 'removed' | null> {
  try {
    const answer = await client.call('GET', `/admin/replicas/${encodeURIComponent(name)}`, signal);
    return toStatus(memberOf(answer, 'replica'));
  } catch (error) {
    if (error instanceof UnreachableError) return null;
    if (error instanceof RefusedError && error.code === 'replica_not_found') return 'removed';
    throw error;
  }
}

/** Reads a replica of the admin API. A missing member is unknown. */
function toStatus(view: unknown): DrainStatus {
  const isSafeToStop = memberOf(view, 'safe_to_stop');
  return {
    isDrained: memberOf(view, 'drained') === true,
    inflight: Number(memberOf(view, 'inflight')),
    background: Number(memberOf(view, 'background') ?? 0),
    backgroundUnknown: Number(memberOf(view, 'background_unknown') ?? 0),
    isSafeToStop: typeof isSafeToStop === 'boolean' ? isSafeToStop : null,
    unconfirmed: itemsOf(view, 'unconfirmed').filter((name) => typeof name === 'string'),
    view,
  };
}

function toDrainSentence(name: string, answer: unknown): string {
  const wasDrained = memberOf(answer, 'was_drained') === true;
  const text = toText(toStatus(memberOf(answer, 'replica')));
  return `${name} ${wasDrained ? 'was already drained' : 'is drained'}: ${text}`;
}

function toText(status: DrainStatus): string {
  const { inflight, background, isSafeToStop, unconfirmed } = status;
  const work = [
    ...(inflight > 0 ? [`${inflight} in flight`] : []),
    ...(background > 0 ? [toBackgroundText(status)] : []),
  ];
  if (work.length > 0) return work.join(', ');
  if (unconfirmed.length > 0) {
    return `nothing known to be in flight, but not confirmed by ${toOneLine(unconfirmed.join(', '))}`;
  }
  return isSafeToStop === null ? 'nothing in flight here, but not confirmed yet' : 'nothing in flight';
}

function toBackgroundText({ background, backgroundUnknown }: DrainStatus): string {
  const text = `${background} in the background`;
  return backgroundUnknown === 0 ? text : `${text} (not known of ${backgroundUnknown})`;
}

/** Why a wait ended before the replica was safe to stop. */
interface WaitProblem {
  readonly kind: Exclude<DrainWaitEnd['kind'], 'safe'>;
  readonly status: DrainStatus;
  /** As given on the command line. */
  readonly timeout: string;
}

function toProblemSentence(name: string, { kind, status, timeout }: WaitProblem): string {
  const drained = `${name} is still drained, with ${toText(status)}`;
  switch (kind) {
    case 'timed_out':
      return `not safe to stop after ${timeout}: ${drained}`;
    case 'interrupted':
      return `stopped waiting: ${drained} (to undo the drain: gateway undrain ${name})`;
    case 'undrained':
      return `${name} takes requests again: it was undrained while this command waited`;
    case 'removed':
      return `${name} is no longer a replica of this gateway`;
  }
}
