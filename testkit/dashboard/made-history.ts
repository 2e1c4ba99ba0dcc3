import type { FoundJson } from '../../src/admin/routes/history/record.ts';
import type { TimelineJson } from '../../src/admin/routes/history/timeline.ts';
import type { UsageJson } from '../../src/admin/routes/history/usage.ts';
import { MADE_AT, secondsAgo } from './made-overview.ts';

export type UsageRow = UsageJson['rows'][number];
export type TimelineEvent = TimelineJson['events'][number];

const KEPT = {
  kept: {
    records_since: secondsAgo(20 * 86_400),
    minutes_since: secondsAgo(7 * 86_400),
    hours_since: secondsAgo(30 * 86_400),
    timeline_since: secondsAgo(30 * 86_400),
  },
  gaps: [],
  note: null,
};

const SECONDS: Readonly<Record<string, number>> = { m: 60, h: 3_600, d: 86_400 };

/** When a span such as `1h` begins; without one, a day ago. */
export const toSince = (since: string | null): string => {
  const [, count, unit] = /^(\d+)([mhd])$/.exec(since ?? '1d') ?? [];
  // `today`, or a date.
  if (count === undefined || unit === undefined) return secondsAgo(12 * 3_600);
  return secondsAgo(Number(count) * (SECONDS[unit] ?? 0));
};

/** Sums of requests without failures, with these changes. */
export const makeSums = (changes: Partial<UsageJson['total']> = {}): UsageJson['total'] => {
  const { requests = 240 } = changes;
  return {
    requests,
    attempts: requests,
    errors: 0,
    client_errors: 0,
    canceled: 0,
    without_usage: 0,
    prompt_tokens: requests * 312,
    completion_tokens: requests * 128,
    cached_tokens: requests * 64,
    reasoning_tokens: 0,
    gpu_seconds: requests * 0.9,
    e2e_ms: { mean: 1_400, p50: 1_240, p95: 3_480 },
    ttft_ms: { count: requests, mean: 130, p50: 118, p95: 290 },
    costs: { EUR: requests * 0.9 * (2.49 / 3_600) },
    failures: {},
    ...changes,
  };
};

/** A row of usage, with these names and changes. */
export const makeRow = (
  names: Readonly<Record<string, string | null>>,
  changes: Partial<UsageRow> = {},
): UsageRow => ({ start: secondsAgo(3_600), ...names, other: false, ...makeSums(changes), ...changes });

/** An answer of GET /admin/usage, with these changes. */
export const makeUsage = (changes: Partial<UsageJson> = {}): UsageJson => ({
  rows: [],
  total: makeSums(),
  since: secondsAgo(3_600),
  until: MADE_AT,
  time_zone: 'Europe/Berlin',
  by: [],
  resolution: 'minute',
  complete: true,
  ...KEPT,
  ...changes,
});

/** An answer of GET /admin/timeline with these events. */
export const makeTimeline = (events: readonly TimelineEvent[], since = secondsAgo(300)): TimelineJson => ({
  events,
  next: null,
  since,
  until: MADE_AT,
  time_zone: 'Europe/Berlin',
  ...KEPT,
});

/** An answer of GET /admin/records/{id} with these records. */
export const makeFound = (records: FoundJson['records']): FoundJson => ({ records, ...KEPT });

/** A history in which nothing ever happened. */
export const forgetAll = (path: string, query: URLSearchParams) => {
  if (path === 'records') return { records: [], history: { next: null, note: null } };
  if (path === 'timeline') return makeTimeline([], toSince(query.get('since')));
  const none = { requests: 0, ttft_ms: { count: 0, mean: null, p50: null, p95: null }, costs: {} };
  const total = makeSums({ ...none, e2e_ms: { mean: null, p50: null, p95: null } });
  if (path === 'usage') return makeUsage({ total, since: toSince(query.get('since')) });
  return { code: 'record_not_found', message: 'No record with this id is in the history of this gateway.' };
};
