import { setTimeout as sleep } from 'node:timers/promises';
import { type AdminClient, openAdmin, UnreachableError } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { createPaint, tableWidthOf } from '#cli/terminal';
import { parseDuration } from '#config/values';
import { printJson } from '../../print-json.ts';
import { enterFullScreen, readKeys } from '../full-screen.ts';
import { OVERVIEW_PATH } from '../overview-path.ts';
import { toOverviewText } from './overview-text.ts';
import { changeView, GROUPINGS, SORT_KEYS, type TopView, toView } from './view.ts';

const KEYS = '    keys: s sort, b by, q quit';

/**
 * `gateway top`: shows what a running gateway does, and updates it until q or Ctrl-C. With `--once`, or if standard
 * output is not a terminal, it prints the overview once; with `--json` it prints the data of the overview.
 */
export async function top(invocation: Invocation): Promise<number> {
  const { args, env, stdout } = invocation;
  const { values } = parseOptions(args, COMMANDS.top.options);
  const intervalMs = parseDuration(values.interval ?? '1s');
  if (!intervalMs) throw new UsageError("option '--interval' needs a duration such as 500ms or 2s");
  const view = toView(values.by, values.sort);
  if (view === 'by') throw new UsageError(`option '--by' must be one of ${GROUPINGS.join(', ')}`);
  if (view === 'sort') throw new UsageError(`option '--sort' must be one of ${SORT_KEYS.join(', ')}`);
  const client = await openAdmin(values, env);
  // An error of the first call is printed before the screen changes.
  const first = await client.call('GET', OVERVIEW_PATH);
  if (values.json) printJson(stdout, first);
  else if (values.once || !stdout.isTTY) {
    const look = { paint: createPaint(stdout, env), width: tableWidthOf(stdout) };
    stdout.write(toOverviewText(first, client.baseUrl, view, look));
  } else await showLive(invocation, client, { first, intervalMs, view });
  return 0;
}

async function showLive(
  { env, stdin, stdout, signals }: Invocation,
  client: AdminClient,
  given: { readonly first: unknown; readonly intervalMs: number; readonly view: TopView },
): Promise<void> {
  const quit = new AbortController();
  const ended = AbortSignal.any([quit.signal, signals.shutdown]);
  const paint = createPaint(stdout, env);
  using screen = enterFullScreen(stdout);
  let { view, first: overview } = given;
  let problem = '';
  const show = () => {
    const text = toOverviewText(overview, client.baseUrl, view, { paint, width: tableWidthOf(stdout) });
    // The first empty line ends the head.
    screen.show(text.replace('\n\n', `${KEYS}\n\n`) + problem);
  };
  const onKey = (key: string) => {
    view = changeView(view, key);
    if (!ended.aborted) show();
  };
  void readKeys(stdin, onKey).then(() => quit.abort());
  while (!ended.aborted) {
    show();
    await sleep(given.intervalMs, undefined, { signal: ended }).catch(() => undefined);
    try {
      overview = await client.call('GET', OVERVIEW_PATH, ended);
      problem = '';
    } catch (error) {
      // A gateway that restarts soon answers again: the last overview stays until then.
      if (!(error instanceof UnreachableError)) throw error;
      problem = `\n${error.message}\n`;
    }
  }
}
