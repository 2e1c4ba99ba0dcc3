import { describe, expect, test } from 'vitest';
import type { TimelineEvent } from '#testkit/dashboard/made-history.ts';
import { MADE_AT, secondsAgo } from '#testkit/dashboard/made-overview.ts';
import {
  toHappenings,
  toLabel,
  toLanes,
  toMarks,
} from '../../../../../src/admin/dashboard/page/history/timeline.js';

const NOW_MS = Date.parse(MADE_AT);
const SPAN = { fromMs: NOW_MS - 3_600_000, untilMs: NOW_MS };
let number = 0;

const makeEvent = (changes: Partial<TimelineEvent>): TimelineEvent => ({
  number: ++number,
  kind: 'drain',
  subject: 'a',
  from: secondsAgo(600),
  until: secondsAgo(300),
  details: {},
  ...changes,
});
const titlesOf = (events: readonly TimelineEvent[]) => toHappenings(events, NOW_MS).map(({ title }) => title);

describe('what happened', () => {
  test('is told in words, the oldest first, with who did it and why', () => {
    const events = [
      makeEvent({
        kind: 'reload',
        from: secondsAgo(10),
        details: { changed_keys: 'history', added: 2, by: 'admin' },
      }),
      makeEvent({ subject: 'a', details: { reason: 'driver update', by: 'ops' } }),
      makeEvent({
        kind: 'condition',
        from: secondsAgo(900),
        details: {
          id: 'model_unavailable',
          severity: 'critical',
          subject: 'm',
          sentence: 'no replica serves m',
        },
      }),
    ];
    expect(toHappenings(events, NOW_MS)).toMatchObject([
      { lane: 'Conditions', look: 'critical', title: 'No replica serves m', details: 'critical' },
      { lane: 'Drains', look: 'drain', title: 'a drained', details: 'driver update, by ops' },
      {
        lane: 'Gateway',
        title: 'Configuration reloaded',
        details: 'changed history, 2 replicas added, by admin',
      },
    ]);
  });

  test('has a shadow beside the drains, with who made it one', () => {
    const event = makeEvent({ kind: 'shadow', subject: 's', details: { share: 0.1, by: 'ops' } });
    expect(toHappenings([event], NOW_MS)).toMatchObject([
      { lane: 'Drains', title: 's a shadow', details: 'by ops' },
    ]);
  });

  test('leaves a name at the beginning of a sentence as it is', () => {
    const details = { id: 'x', severity: 'warning', subject: 'vllm-a', sentence: 'vllm-a does not answer' };
    expect(titlesOf([makeEvent({ kind: 'condition', details })])).toEqual(['vllm-a does not answer']);
  });

  test('has a gateway that was stopped as a band until it started again', () => {
    const stop = makeEvent({ kind: 'stop', subject: '', from: secondsAgo(400), until: secondsAgo(400) });
    const start = makeEvent({ kind: 'start', subject: '', from: secondsAgo(340), until: secondsAgo(340) });
    const [down] = toHappenings([start, stop], NOW_MS);
    expect(down).toMatchObject({ look: 'down', fromMs: NOW_MS - 400_000, untilMs: NOW_MS - 340_000 });
  });
});

describe('the steps of a rollout', () => {
  const step = (name: string, outcome: string, changes: Partial<TimelineEvent> = {}) =>
    makeEvent({
      kind: 'rollout',
      ...changes,
      details: { step: name, outcome, sentence: null, trace_id: 't' },
    });

  test('are one band from the first to the last, with its end', () => {
    const steps = [
      step('restart', 'ok', { subject: 'a', from: secondsAgo(500), until: secondsAgo(450) }),
      step('compare', 'good', { subject: 'b', from: secondsAgo(450), until: secondsAgo(350) }),
      step('rollout', 'ok', { subject: '', from: secondsAgo(510), until: secondsAgo(340) }),
    ];
    const [rollout, ...more] = toHappenings(steps, NOW_MS);
    expect(more).toEqual([]);
    expect(rollout).toMatchObject({
      title: 'Rollout of 2 replicas',
      details: 'done',
      look: 'rollout',
      fromMs: NOW_MS - 510_000,
      untilMs: NOW_MS - 340_000,
    });
    expect(rollout?.steps.map(({ title }) => title)).toEqual(['Restart of a', 'Comparison of b']);
  });

  test('go on while the whole has told no end, and not for ever', () => {
    const restart = step('restart', 'ok', { from: secondsAgo(500), until: secondsAgo(450) });
    expect(toHappenings([restart], NOW_MS)).toMatchObject([{ untilMs: null, details: 'under way' }]);
    expect(toHappenings([restart], NOW_MS + 3_600_000)).toMatchObject([{ untilMs: NOW_MS - 450_000 }]);
  });

  test('are no failure if a comparison decides nothing, unless that stops them', () => {
    const compared = step('compare', 'undecided');
    expect(
      toHappenings([compared, step('replica', 'ok'), step('rollout', 'ok', { subject: '' })], NOW_MS),
    ).toMatchObject([
      { look: 'rollout', details: 'done', steps: [{ look: 'rollout' }, { look: 'rollout' }] },
    ]);
    const stopped = [compared, step('replica', 'undecided'), step('rollout', 'undecided', { subject: '' })];
    expect(toHappenings(stopped, NOW_MS)).toMatchObject([{ look: 'failed', details: 'undecided' }]);
  });

  test('that were bad give it their colour and their sentence', () => {
    const bad = makeEvent({
      kind: 'rollout',
      details: { step: 'compare', outcome: 'bad', sentence: 'first token 2.1 times as long', trace_id: 't' },
    });
    expect(toHappenings([bad, step('rollout', 'failed', { subject: '' })], NOW_MS)).toMatchObject([
      { look: 'failed', details: 'bad: first token 2.1 times as long' },
    ]);
  });
});

describe('bands', () => {
  test('begin and end at their shares of the span, and are cut at its ends', () => {
    const events = [
      makeEvent({ from: secondsAgo(1_800), until: secondsAgo(900) }),
      makeEvent({ subject: 'b', from: secondsAgo(9_000), until: null }),
    ];
    const [lane] = toLanes(toHappenings(events, NOW_MS), SPAN);
    expect(lane?.rows.flat().map(({ left, width }) => [left, width])).toEqual([
      [0, 1],
      [0.5, 0.25],
    ]);
  });

  test('that overlap are below each other, and beyond two rows share one', () => {
    const events = ['a', 'b', 'c', 'd', 'e'].map((subject) => makeEvent({ subject }));
    const [lane] = toLanes(toHappenings(events, NOW_MS), SPAN);
    expect(lane?.rows.map((row) => row.map(({ happenings }) => happenings.length))).toEqual([[1], [4]]);
    const [shared] = lane?.rows[1] ?? [];
    expect(shared === undefined ? '' : toLabel(shared, NOW_MS)).toMatch(
      /^4 events, .*: b drained; c drained; d drained; e drained$/,
    );
  });

  test('a moment is wide enough to be pressed, also at the very end', () => {
    const now = makeEvent({ kind: 'reload', from: MADE_AT, until: MADE_AT });
    const [lane] = toLanes(toHappenings([now], NOW_MS), SPAN);
    const [band] = lane?.rows.flat() ?? [];
    expect(band?.width).toBeGreaterThan(0.01);
    expect((band?.left ?? 0) + (band?.width ?? 0)).toBeLessThanOrEqual(1);
  });

  test('say when, for how long, and that they go on', () => {
    const [, goesOn] =
      toLanes(
        toHappenings([makeEvent({}), makeEvent({ subject: 'b', until: null })], NOW_MS),
        SPAN,
      )[0]?.rows.flat() ?? [];
    expect(goesOn === undefined ? '' : toLabel(goesOn, NOW_MS)).toMatch(
      /^b drained, since \d\d:\d\d:\d\d, for 10 min$/,
    );
  });
});

test('charts mark all but notices, and what goes on without an end', () => {
  const notice = { severity: 'notice', sentence: 'a drain is old' };
  const events = [
    makeEvent({ until: null }),
    makeEvent({ kind: 'condition', from: secondsAgo(60), details: notice }),
  ];
  const [mark, ...more] = toMarks(toHappenings(events, NOW_MS));
  expect(mark).toEqual({ look: 'drain', fromMs: NOW_MS - 600_000, untilMs: Number.POSITIVE_INFINITY });
  expect(more).toEqual([]);
});
