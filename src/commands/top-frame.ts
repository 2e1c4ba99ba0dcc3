import { memberOf, toOneLine } from './admin/client.ts';
import { toAge, toNameAndState } from './terminal/replica-cells.ts';
import { toTable } from './terminal/table.ts';

/** One picture of `gateway top`: the lines of an overview of the admin API. */
export function toTopFrame(overview: unknown, gateway: string): string {
  const time = String(memberOf(overview, 'time'));
  const nowEpochMs = Date.parse(time);
  const upMs = nowEpochMs - Date.parse(String(memberOf(overview, 'started_at')));
  const collector = memberOf(overview, 'collector');
  const head = [
    `${gateway}  up ${toAge(upMs)}  ${time.slice(11, 19)} UTC`,
    `last minute  ${toTrafficLine(memberOf(overview, 'last_minute'))}`,
    `records  ${toRecordLine(memberOf(overview, 'stats'))}; collector ${String(memberOf(collector, 'state'))}`,
    '',
  ];
  const table = toReplicaTable(memberOf(overview, 'replicas'), nowEpochMs);
  return head.map((line) => `${toOneLine(line)}\n`).join('') + table;
}

function toTrafficLine(traffic: unknown): string {
  const rates = [
    `${toRate(memberOf(traffic, 'requests_per_s'))} requests/s`,
    `${toRate(memberOf(traffic, 'output_tokens_per_s'))} output tokens/s`,
    `${toRate(memberOf(traffic, 'errors'))} errors`,
  ];
  return rates.join('  ');
}

/** The counters that say whether records get where they should. */
function toRecordLine(stats: unknown): string {
  const names = ['recorded', 'exported', 'queued', 'dropped', 'rejected', 'failed_calls'];
  return names.map((name) => `${String(memberOf(stats, name))} ${name.replace('_', ' ')}`).join('  ');
}

const FIGURES = [
  ...['INFLIGHT', 'REQ/S', 'ERRORS', 'TOKENS/S'],
  ...['TTFT P50', 'TTFT P95', 'E2E P50', 'E2E P95'],
];

function toReplicaTable(listed: unknown, nowEpochMs: number): string {
  const rows = (Array.isArray(listed) ? listed : []).map((replica: unknown) => {
    const traffic = memberOf(replica, 'last_minute');
    return [
      ...toNameAndState(replica, nowEpochMs),
      toRate(memberOf(replica, 'inflight')),
      toRate(memberOf(traffic, 'requests_per_s')),
      toRate(memberOf(traffic, 'errors')),
      toRate(memberOf(traffic, 'output_tokens_per_s')),
      toTime(memberOf(traffic, 'ttft_p50_ms')),
      toTime(memberOf(traffic, 'ttft_p95_ms')),
      toTime(memberOf(traffic, 'latency_p50_ms')),
      toTime(memberOf(traffic, 'latency_p95_ms')),
    ];
  });
  return toTable(['NAME', 'STATE', ...FIGURES], rows, FIGURES);
}

/** A number with a decimal where it matters. */
function toRate(value: unknown): string {
  if (typeof value !== 'number') return '-';
  return Number.isInteger(value) || value >= 100 ? value.toFixed(0) : value.toFixed(1);
}

function toTime(ms: unknown): string {
  if (typeof ms !== 'number') return '-';
  return ms < 10_000 ? `${ms.toFixed(0)} ms` : `${(ms / 1_000).toFixed(1)} s`;
}
