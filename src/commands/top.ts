import { setTimeout as sleep } from 'node:timers/promises';
import { parseDuration } from '../config/values.ts';
import { type AdminClient, adminOptions, openAdmin, UnreachableError } from './admin/client.ts';
import { type Invocation, UsageError } from './command-line/command.ts';
import { parseOptions } from './command-line/options.ts';
import { takeScreen, untilQuit } from './terminal/full-screen.ts';
import { toTopFrame } from './top-frame.ts';

const OPTIONS = { ...adminOptions, once: { type: 'boolean' }, interval: { type: 'string' } } as const;

/** No records: the picture has none. */
const OVERVIEW = '/admin/overview?after=999999999999999';

/**
 * `gateway top`: what a running gateway does, redrawn in place until q or Ctrl-C. One picture where nobody looks, or
 * with `--once`; with `--json` that picture's data.
 */
export async function top(invocation: Invocation): Promise<number> {
  const { args, env, stdout } = invocation;
  const { values } = parseOptions(args, OPTIONS);
  const intervalMs = parseDuration(values.interval ?? '1s');
  if (!intervalMs) throw new UsageError("option '--interval' needs a duration such as 500ms or 2s");
  const client = await openAdmin(values, env);
  // Whatever is wrong from the start is said before the screen is taken.
  const first = await client.call('GET', OVERVIEW);
  if (values.json) stdout.write(`${JSON.stringify(first, null, 2)}\n`);
  else if (values.once || !stdout.isTTY) stdout.write(toTopFrame(first, client.baseUrl));
  else await watch(invocation, client, { first, intervalMs });
  return 0;
}

async function watch(
  { stdin, stdout, signals }: Invocation,
  client: AdminClient,
  { first, intervalMs }: { readonly first: unknown; readonly intervalMs: number },
): Promise<void> {
  const quit = new AbortController();
  const over = AbortSignal.any([quit.signal, signals.shutdown]);
  void untilQuit(stdin).then(() => quit.abort());
  using screen = takeScreen(stdout);
  let frame = toTopFrame(first, client.baseUrl);
  let problem = '';
  while (!over.aborted) {
    screen.show(frame + problem);
    await sleep(intervalMs, undefined, { signal: over }).catch(() => undefined);
    try {
      frame = toTopFrame(await client.call('GET', OVERVIEW, over), client.baseUrl);
      problem = '';
    } catch (error) {
      // A gateway that restarts is back in a moment; the last picture stays until then.
      if (!(error instanceof UnreachableError)) throw error;
      problem = `\n${error.message}\n`;
    }
  }
}
