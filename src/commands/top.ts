import { setTimeout as sleep } from 'node:timers/promises';
import { parseDuration } from '../config/values.ts';
import {
  type AdminClient,
  adminOptions,
  itemsOf,
  memberOf,
  openAdmin,
  printJson,
  UnreachableError,
} from './admin/client.ts';
import { type Invocation, UsageError } from './command-line/command.ts';
import { parseOptions } from './command-line/options.ts';
import { enterFullScreen, untilQuit } from './terminal/full-screen.ts';
import { toAge, toNameAndState } from './terminal/replica-cells.ts';
import { toOneLine, toTable } from './terminal/table.ts';

const OPTIONS = { ...adminOptions, once: { type: 'boolean' }, interval: { type: 'string' } } as const;

/** Excludes all records: `top` shows none. */
const OVERVIEW = '/admin/overview?after=999999999999999';

/**
 * `gateway top`: shows what a running gateway does, and updates it until q or Ctrl-C. With `--once`, or if standard
 * output is not a terminal, it prints the overview once; with `--json` it prints the data of the overview.
 */
export async function top(invocation: Invocation): Promise<number> {
  const { args, env, stdout } = invocation;
  const { values } = parseOptions(args, OPTIONS);
  const intervalMs = parseDuration(values.interval ?? '1s');
  if (!intervalMs) throw new UsageError("option '--interval' needs a duration such as 500ms or 2s");
  const client = await openAdmin(values, env);
  // An error of the first call is printed before the screen changes.
  const first = await client.call('GET', OVERVIEW);
  if (values.json) printJson(stdout, first);
  else if (values.once || !stdout.isTTY) stdout.write(toOverviewText(first, client.baseUrl));
  else await showLive(invocation, client, { first, intervalMs });
  return 0;
}

async function showLive(
  { stdin, stdout, signals }: Invocation,
  client: AdminClient,
  { first, intervalMs }: { readonly first: unknown; readonly intervalMs: number },
): Promise<void> {
  const quit = new AbortController();
  const ended = AbortSignal.any([quit.signal, signals.shutdown]);
  void untilQuit(stdin).then(() => quit.abort());
  using screen = enterFullScreen(stdout);
  let text = toOverviewText(first, client.baseUrl);
  let problem = '';
  while (!ended.aborted) {
    screen.show(text + problem);
    await sleep(intervalMs, undefined, { signal: ended }).catch(() => undefined);
    try {
      text = toOverviewText(await client.call('GET', OVERVIEW, ended), client.baseUrl);
      problem = '';
    } catch (error) {
      // A gateway that restarts soon answers again: the last overview stays until then.
      if (!(error instanceof UnreachableError)) throw error;
      problem = `\n${error.message}\n`;
    }
  }
}

/** Formats an overview of the admin API. `gateway` is shown as its source. */
export function toOverviewText(overview: unknown, gateway: string): string {
  const time = String(memberOf(overview, 'time'));
  const nowEpochMs = Date.parse(time);
  const upMs = nowEpochMs - Date.parse(String(memberOf(overview, 'started_at')));
  const collector = memberOf(overview, 'collector');
  const head = [
    `${gateway}  up ${toAge(upMs)}  ${time.slice(11, 19)} UTC`,
    `last minute  ${toTrafficText(memberOf(overview, 'last_minute'))}`,
    `records  ${toExportText(memberOf(overview, 'stats'))}; collector ${String(memberOf(collector, 'state'))}`,
    '',
  ];
  const table = toTrafficTable(itemsOf(overview, 'replicas'), nowEpochMs);
  return head.map((line) => `${toOneLine(line)}\n`).join('') + table;
}

function toTrafficText(traffic: unknown): string {
  const rates = [
    `${toDecimal(memberOf(traffic, 'requests_per_s'))} requests/s`,
    `${toDecimal(memberOf(traffic, 'output_tokens_per_s'))} output tokens/s`,
    `${toDecimal(memberOf(traffic, 'errors'))} errors`,
  ];
  return rates.join('  ');
}

/** The counters that show whether records are delivered. */
function toExportText(stats: unknown): string {
  const names = ['recorded', 'exported', 'queued', 'dropped', 'rejected', 'failed_calls'];
  return names.map((name) => `${String(memberOf(stats, name))} ${name.replace('_', ' ')}`).join('  ');
}

const NUMBER_COLUMNS = [
  ...['INFLIGHT', 'REQ/S', 'ERRORS', 'TOKENS/S'],
  ...['TTFT P50', 'TTFT P95', 'E2E P50', 'E2E P95'],
];

function toTrafficTable(replicas: readonly unknown[], nowEpochMs: number): string {
  const rows = replicas.map((replica) => {
    const traffic = memberOf(replica, 'last_minute');
    return [
      ...toNameAndState(replica, nowEpochMs),
      toDecimal(memberOf(replica, 'inflight')),
      toDecimal(memberOf(traffic, 'requests_per_s')),
      toDecimal(memberOf(traffic, 'errors')),
      toDecimal(memberOf(traffic, 'output_tokens_per_s')),
      toTime(memberOf(traffic, 'ttft_p50_ms')),
      toTime(memberOf(traffic, 'ttft_p95_ms')),
      toTime(memberOf(traffic, 'latency_p50_ms')),
      toTime(memberOf(traffic, 'latency_p95_ms')),
    ];
  });
  return toTable(['NAME', 'STATE', ...NUMBER_COLUMNS], rows, NUMBER_COLUMNS);
}

/** One decimal for fractions below 100, otherwise none. */
function toDecimal(value: unknown): string {
  if (typeof value !== 'number') return '-';
  return Number.isInteger(value) || value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

function toTime(ms: unknown): string {
  if (typeof ms !== 'number') return '-';
  return ms < 10_000 ? `${ms.toFixed(0)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
