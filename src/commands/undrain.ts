import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminClient, memberOf, openAdmin, RefusedError, UnreachableError } from './admin/client.ts';
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

const DEFAULT_TIMEOUT = '2m';
const LOOK_EVERY_MS = 500;

/**
 * `gateway undrain NAME`: a drained replica takes its turns again. With `--wait` it tries again while the gateway does
 * not answer, and watches the replica come back: exit code 0 only when it is there and answers.
 */
export async function undrain(invocation: Invocation): Promise<number> {
  const { args, env, stdout, stderr } = invocation;
  const { values, positionals } = parseOptions(args, drainOptions, ['NAME']);
  const timeoutMs = toTimeoutMs(values, DEFAULT_TIMEOUT);
  const client = await openAdmin(values, env);
  const [name = ''] = positionals;
  const tell = (text: string) => {
    if (!values.json) stdout.write(`${text}\n`);
  };
  const endMs = performance.now() + timeoutMs;
  const call = { name, action: 'undrain', reason: values.reason } as const;
  const answer = await callDrain(client, call, values.wait ? toPatience(invocation, timeoutMs) : null);
  const isStored = tellWarnings(stderr, name, answer);
  if (isOvertaken(answer)) {
    if (values.json) printJson(stdout, answer);
    return 1;
  }
  tell(toSentence(name, answer));
  if (!values.wait) {
    if (values.json) printJson(stdout, answer);
    return isStored ? 0 : 1;
  }
  const end = await watchReturn(client, invocation, { name, endMs, isQuiet: values.json === true });
  if (values.json)
    printJson(stdout, { ...(answer as object), ...(end.view === undefined ? {} : { replica: end.view }) });
  if (end.problem === null) {
    tell(`${name} answers`);
    return isStored ? 0 : 1;
  }
  stderr.write(`gateway: ${name} ${end.problem}\n`);
  return 1;
}

function toSentence(name: string, answer: unknown): string {
  if (memberOf(memberOf(answer, 'replica'), 'absent') === true) {
    return `${name} is undrained, and takes requests when it comes: it is not among the replicas now`;
  }
  const wasDrained = memberOf(answer, 'was_drained') === true;
  return `${name} takes requests ${wasDrained ? 'again' : '(it was not drained)'}`;
}

interface Return {
  /** Why it is not back; null if it is. */
  readonly problem: string | null;
  /** The replica as it was told last. */
  readonly view: unknown;
}

/** Has the gateway ask the replica until it answers. */
async function watchReturn(
  client: AdminClient,
  { stdout, signals: { shutdown: signal } }: Invocation,
  { name, endMs, isQuiet }: { readonly name: string; readonly endMs: number; readonly isQuiet: boolean },
): Promise<Return> {
  const line = createLiveLine(stdout);
  let lastState = 'was not looked at';
  try {
    for (;;) {
      const { state, view } = await look(client, name, signal);
      if (signal.aborted) return { problem: `is undrained; stopped waiting: it ${lastState}`, view };
      lastState = state;
      if (state === 'reachable') return { problem: null, view };
      if (state === 'drained') return { problem: 'was drained again while this command waited', view };
      if (performance.now() >= endMs) return { problem: `is undrained, but it ${state}`, view };
      if (!isQuiet) line.show(`${name}: ${state}`);
      await sleep(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    line.end();
  }
}

/** How the replica stands, in words that follow its name. */
async function look(
  client: AdminClient,
  name: string,
  signal: AbortSignal,
): Promise<{ readonly state: string; readonly view?: unknown }> {
  let answer: unknown;
  try {
    answer = await client.call('GET', `/admin/replicas/${encodeURIComponent(name)}`, signal);
  } catch (error) {
    if (error instanceof UnreachableError) return { state: 'cannot be seen: the gateway does not answer' };
    if (error instanceof RefusedError && error.code === 'replica_not_found') {
      return { state: 'is not among the replicas' };
    }
    throw error;
  }
  const view = memberOf(answer, 'replica');
  if (memberOf(view, 'drained') === true) return { state: 'drained', view };
  const reachability = memberOf(view, 'reachability');
  if (reachability === 'reachable') return { state: reachability, view };
  return { state: reachability === 'loading' ? 'loads its model' : 'does not answer', view };
}
