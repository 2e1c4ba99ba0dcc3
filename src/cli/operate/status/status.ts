import { setTimeout as sleep } from 'node:timers/promises';
import { openGateways } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { createPaint, sizeOf, tableWidthOf } from '#cli/terminal';
import { parseDuration } from '#config/values';
import { printJson } from '../../print-json.ts';
import { enterFullScreen, readKeys } from '../full-screen.ts';
import { OVERVIEW_PATH } from '../overview-path.ts';
import { type Look, lookAt, toChangeKey, toExitCode } from './look.ts';
import { toStatusText } from './status-text.ts';

const CONDITIONS_PATH = '/admin/conditions';

/** On a terminal at least this wide there is room for what to do. */
const WIDE = 100;

/**
 * `gateway status`: shows what is wrong with running gateways, the most severe first. Returns 0 if nothing is worse than a
 * notice, 1 with a warning, 2 with a critical condition, 3 if a gateway gave no answer. With `--watch` it looks again and
 * again until the first signal, q or Ctrl-C, and returns what the last look says.
 */
export async function status(invocation: Invocation): Promise<number> {
  const { args, env, stdout, stderr } = invocation;
  const { values } = parseOptions(args, COMMANDS.status.options);
  const intervalMs = parseDuration(values.interval ?? '2s');
  if (!intervalMs) throw new UsageError("option '--interval' needs a duration such as 500ms or 2s");
  if (values.interval !== undefined && !values.watch)
    throw new UsageError("option '--interval' needs '--watch'");
  const clients = await openGateways(values, env);
  const path = values.json ? CONDITIONS_PATH : OVERVIEW_PATH;
  const look = (signal?: AbortSignal) => Promise.all(clients.map((client) => lookAt(client, path, signal)));
  const toText = createFormat(invocation, values.verbose === true);
  const print = (looks: readonly Look[]) => {
    if (values.json) printJson(stdout, toJson(looks));
    else stdout.write(toText(looks));
  };
  const first = await look();
  const answered = first.filter(({ problem }) => problem === null);
  if (values.watch && answered.length > 0) {
    const watching = { first, look, intervalMs };
    if (stdout.isTTY && !values.json) return await watchOnScreen(invocation, watching, toText);
    const separated = (looks: readonly Look[]) => {
      print(looks);
      stdout.write('\n');
    };
    return await watchInPipe(invocation, watching, separated);
  }
  for (const { problem } of first) if (problem !== null) stderr.write(`gateway: ${problem}\n`);
  if (answered.length > 0) print(values.json ? first : answered);
  return toExitCode(first);
}

/** Formats looks for the output. The terminal may have another size each time. */
type ToText = (looks: readonly Look[]) => string;

function createFormat({ env, stdout }: Invocation, isVerbose: boolean): ToText {
  const paint = createPaint(stdout, env);
  return (looks) => {
    const hasRemedy = isVerbose || (stdout.isTTY === true && sizeOf(stdout).columns >= WIDE);
    return toStatusText(looks, { paint, width: tableWidthOf(stdout), hasRemedy });
  };
}

/** The answer of the only gateway as it is; of several a list with their addresses. */
function toJson(looks: readonly Look[]): unknown {
  const [only] = looks;
  if (looks.length === 1 && only?.problem === null) return only.answer;
  return {
    gateways: looks.map(({ baseUrl, answer, problem }) =>
      problem === null ? { admin: baseUrl, ...(answer as object) } : { admin: baseUrl, error: problem },
    ),
  };
}

interface Watching {
  readonly first: readonly Look[];
  readonly look: (signal: AbortSignal) => Promise<readonly Look[]>;
  readonly intervalMs: number;
}

/** Yields the looks, until the signal aborts. */
async function* lookAgain({ first, look, intervalMs }: Watching, ended: AbortSignal) {
  yield first;
  for (;;) {
    await sleep(intervalMs, undefined, { signal: ended }).catch(() => undefined);
    if (ended.aborted) return;
    const next = await look(ended);
    // What is cut by the signal looks like a gateway that does not answer.
    if (ended.aborted) return;
    yield next;
  }
}

/** Shows the looks on the whole screen. What a gateway has answered stays while it does not answer. */
async function watchOnScreen(
  { stdin, stdout, signals }: Invocation,
  watching: Watching,
  toText: ToText,
): Promise<number> {
  const quit = new AbortController();
  const ended = AbortSignal.any([quit.signal, signals.shutdown]);
  using screen = enterFullScreen(stdout);
  void readKeys(stdin, () => undefined).then(() => quit.abort());
  let exitCode = 0;
  let known: readonly Look[] = [];
  for await (const looks of lookAgain(watching, ended)) {
    const before = known;
    known = looks.map((look, at) => ({ ...look, answer: look.answer ?? before[at]?.answer ?? null }));
    screen.show(toText(known));
    exitCode = toExitCode(looks);
  }
  return exitCode;
}

/** Prints the looks in which something has changed. */
async function watchInPipe(
  { signals }: Invocation,
  watching: Watching,
  print: (looks: readonly Look[]) => void,
): Promise<number> {
  let shown = '';
  let exitCode = 0;
  for await (const looks of lookAgain(watching, signals.shutdown)) {
    const key = toChangeKey(looks);
    if (key !== shown) print(looks);
    shown = key;
    exitCode = toExitCode(looks);
  }
  return exitCode;
}
