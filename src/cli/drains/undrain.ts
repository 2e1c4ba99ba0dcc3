import { setTimeout as sleep } from 'node:timers/promises';
import { memberOf } from '#base/parsed';
import { type AdminClient, callDrain, openAdmin, RefusedError, UnreachableError } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import type { Invocation } from '#cli/command';
import { parseDuration, printDuration } from '#config/values';
import { printJson } from '../print-json.ts';
import { toReasonText } from '../tables/replica-cells.ts';
import { checkRamp, isOvertaken, printWarnings, toRetryPolicy, toTimeoutMs } from './drain-options.ts';
import { createProgressLine } from './progress-line.ts';

const DEFAULT_TIMEOUT = '2m';
const POLL_INTERVAL_MS = 500;

/**
 * `gateway undrain NAME`: sends requests to a drained replica again. With `--wait` it repeats the call while the gateway
 * does not answer, waits for the replica, and exits with 0 only when the replica answers.
 */
export async function undrain(invocation: Invocation): Promise<number> {
  const { args, env, stdout, stderr } = invocation;
  const { values, positionals } = parseOptions(args, COMMANDS.undrain.options, ['NAME']);
  const timeoutMs = toTimeoutMs(values, DEFAULT_TIMEOUT);
  checkRamp(values.ramp);
  const client = await openAdmin(values, env, 'operator');
  const [name = ''] = positionals;
  const print = (text: string) => {
    if (!values.json) stdout.write(`${text}\n`);
  };
  const endMs = performance.now() + timeoutMs;
  const call = { name, action: 'undrain', reason: values.reason, ramp: values.ramp } as const;
  const answer = await callDrain(client, call, values.wait ? toRetryPolicy(invocation, timeoutMs) : null);
  const isStored = printWarnings(stderr, name, answer);
  if (isOvertaken(answer)) {
    if (values.json) printJson(stdout, answer);
    return 1;
  }
  print(toSentence(name, answer, Boolean(parseDuration(values.ramp ?? '0s'))));
  if (!values.wait) {
    if (values.json) printJson(stdout, answer);
    return isStored ? 0 : 1;
  }
  const end = await waitUntilReachable(client, invocation, { name, endMs, isQuiet: values.json === true });
  if (values.json)
    printJson(stdout, { ...(answer as object), ...(end.view === undefined ? {} : { replica: end.view }) });
  if (end.problem === null) {
    print(`${name} answers`);
    return isStored ? 0 : 1;
  }
  stderr.write(`gateway: ${name} ${end.problem}\n`);
  return 1;
}

function toSentence(name: string, answer: unknown, isRampAsked: boolean): string {
  if (memberOf(memberOf(answer, 'replica'), 'absent') === true) {
    return `${name} is undrained, but is not a replica now: it takes requests as soon as it is one`;
  }
  const wasDrained = memberOf(answer, 'was_drained') === true;
  const work = memberOf(memberOf(answer, 'replica'), 'shadow') == null ? 'takes requests' : 'gets copies';
  const durationMs = memberOf(memberOf(memberOf(answer, 'replica'), 'ramp'), 'duration_ms');
  if (!wasDrained) return `${name} ${work} (it was not drained${isRampAsked ? ', so no ramp begins' : ''})`;
  if (typeof durationMs !== 'number') return `${name} ${work} again`;
  return `${name} ${work} again, more and more of them for ${printDuration(durationMs)}`;
}

interface WaitEnd {
  /** Null if the replica answers. */
  readonly problem: string | null;
  /** The replica as the admin API last showed it. */
  readonly view: unknown;
}

/** Polls the replica until it answers. */
async function waitUntilReachable(
  client: AdminClient,
  { stdout, signals: { shutdown: signal } }: Invocation,
  { name, endMs, isQuiet }: { readonly name: string; readonly endMs: number; readonly isQuiet: boolean },
): Promise<WaitEnd> {
  const line = createProgressLine(stdout);
  let lastState = 'has not been checked';
  try {
    for (;;) {
      const { state, view } = await poll(client, name, signal);
      if (signal.aborted) return { problem: `is undrained; stopped waiting: it ${lastState}`, view };
      lastState = state;
      if (state === 'reachable') return { problem: null, view };
      if (state === 'drained') return { problem: 'was drained again while this command waited', view };
      if (performance.now() >= endMs) return { problem: `is undrained, but it ${state}`, view };
      if (!isQuiet) line.show(`${name} ${state}`);
      await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    line.end();
  }
}

/** `state` is `reachable`, `drained`, or words that follow the replica's name. */
async function poll(
  client: AdminClient,
  name: string,
  signal: AbortSignal,
): Promise<{ readonly state: string; readonly view?: unknown }> {
  let answer: unknown;
  try {
    answer = await client.call('GET', `/admin/replicas/${encodeURIComponent(name)}`, signal);
  } catch (error) {
    if (error instanceof UnreachableError) return { state: 'is unknown: the gateway does not answer' };
    if (error instanceof RefusedError && error.code === 'replica_not_found') {
      return { state: 'is not a replica of this gateway' };
    }
    throw error;
  }
  const view = memberOf(answer, 'replica');
  if (memberOf(view, 'drained') === true) return { state: 'drained', view };
  const reachability = memberOf(view, 'reachability');
  if (reachability === 'reachable') return { state: reachability, view };
  if (reachability === 'loading') return { state: 'is loading its model', view };
  const why = toReasonText(memberOf(view, 'reachability_reason'));
  return { state: why === null ? 'does not answer' : `does not answer (${why})`, view };
}
