import { expect, it } from 'vitest';
import type { Answer, UsageRow } from '#history';
import { toUsageJson } from '../../../src/admin/routes/history/usage.ts';

const SINCE_MS = Date.parse('2026-11-21T08:00:00Z');
const SPAN = { fromMs: SINCE_MS, untilMs: SINCE_MS + 3_600_000, timeZone: 'UTC' };
const KEPT = { recordsMs: 0, minutesMs: 0, hoursMs: 0, timelineMs: 0, lossesMs: 0 };
const NONE = { p50: null, p95: null };
const TOTAL: UsageRow = {
  startMs: SINCE_MS,
  group: [],
  isOther: false,
  failures: {},
  costs: {},
  duration: NONE,
  sums: {
    requests: 0,
    attempts: 0,
    errors: 0,
    client_errors: 0,
    canceled: 0,
    without_usage: 0,
    prompt_tokens: 0,
    completion_tokens: 0,
    cached_tokens: 0,
    reasoning_tokens: 0,
    gpu_seconds: 0,
    e2e_ms: 0,
    ttft_ms: 0,
  },
  firstToken: { count: 0, ...NONE },
};

it.each([
  [0, true, null],
  [8_000, false, '8000 requests were summed without names, and are not in this answer.'],
])(
  'an answer for one name, beside which %i requests have none: complete is %s',
  (unnamed, complete, note) => {
    const answer: Answer<'usage'> = {
      kind: 'usage',
      ...SPAN,
      resolution: 'hour',
      rows: [],
      total: TOTAL,
      unnamed,
      gaps: [],
      isComplete: true,
      kept: KEPT,
      unknown: [],
    };
    expect(toUsageJson(answer, SPAN, ['tenant'])).toMatchObject({ complete, note });
  },
);
