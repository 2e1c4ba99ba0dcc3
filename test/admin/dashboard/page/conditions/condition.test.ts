import { describe, expect, test } from 'vitest';
import { MADE_AT, makeConditions, secondsAgo } from '#testkit/dashboard/made-overview.ts';
import {
  toChip,
  toFigures,
  toLine,
  toPieces,
  toSince,
  toSummary,
  toTargets,
} from '../../../../../src/admin/dashboard/page/conditions/condition.js';

type Finding = Parameters<typeof makeConditions>[0][number];

function toCondition(finding: Finding): ReturnType<typeof makeConditions>[number] {
  const [condition] = makeConditions([finding]);
  if (condition === undefined) throw new Error('no condition');
  return condition;
}

const unreachable = (subject: string): Finding => ({
  id: 'replica_unreachable',
  subject,
  figures: { reason: 'connection refused' },
  sinceEpochMs: Date.parse(secondsAgo(190)),
});

describe('a chip', () => {
  test('says the severity and the sentence of the gateway', () => {
    expect(toChip(toCondition(unreachable('a')))).toEqual({
      key: 'replica_unreachable a',
      severity: 'warning',
      word: 'Warning',
      text: 'a does not answer: connection refused',
    });
  });

  test('begins with a capital letter, unless it begins with a name', () => {
    const model = toCondition({ id: 'model_unavailable', subject: 'm', figures: { drained: 1, away: 2 } });
    expect(toChip(model).text).toBe(`N${model.sentence.slice(1)}`);
  });
});

test('a line with more conditions than places keeps the first and counts the others', () => {
  const conditions = makeConditions(['a', 'b', 'c', 'd'].map(unreachable));
  const namesOf = ({ shown, others }: ReturnType<typeof toLine>) => [
    shown.map(({ subject }) => subject).join(''),
    others,
  ];
  expect(namesOf(toLine(conditions, 4))).toEqual(['abcd', 0]);
  expect(namesOf(toLine(conditions, 3))).toEqual(['ab', 2]);
});

test('the summary counts by severity, the worst first', () => {
  const conditions = makeConditions([
    unreachable('a'),
    unreachable('b'),
    { id: 'config_not_loaded', subject: 'gateway.yaml', figures: {} },
    { id: 'model_unavailable', subject: 'm', figures: { drained: 1, away: 2 } },
  ]);
  expect(toSummary(conditions)).toBe('1 critical, 2 warnings, 1 notice');
  expect(toSummary([])).toBe('');
});

test('a condition says since when it is on, and for how long', () => {
  const text = toSince(toCondition(unreachable('a')), MADE_AT);
  expect(text).toMatch(/^since \d\d:\d\d:\d\d, for 3 min$/);
});

test('figures have names and units, and those without a value are left out', () => {
  const figures = { limit: 'max_inflight', allowed: 8, used: 8, refused: 12, silent: 0, held: '' };
  expect(toFigures(toCondition({ id: 'tenant_limit_reached', subject: 'acme', figures }))).toEqual([
    ['Limit', 'max_inflight'],
    ['Allowed', '8'],
    ['Used', '8'],
    ['Refused', '12'],
    ['Silent', '0'],
  ]);
  const held = ', held by 3 silent streams at a';
  const limit = toCondition({ id: 'tenant_limit_reached', subject: 'acme', figures: { ...figures, held } });
  expect(toFigures(limit).at(-1)).toEqual(['Held', 'held by 3 silent streams at a']);
  const expiring = { left: 3_600, ends: '2026-11-21T13:00:00Z' };
  const certificate = { id: 'certificate_ends_in_1_day', subject: 'a', figures: expiring } as const;
  expect(toFigures(toCondition(certificate)).at(-1)?.[1]).toMatch(/^(Nov 2\d, 2026, )?\d\d:\d\d:00$/);
  const filling = { queued: 9_000, capacity: 16_384, left: 240 };
  expect(toFigures(toCondition({ id: 'queue_filling', subject: '', figures: filling })).at(-1)).toEqual([
    'Left',
    '4 min',
  ]);
});

test('code spans are told from the text around them', () => {
  expect(toPieces('`health` is off: add `health: {}`.')).toEqual([
    { text: 'health', isCode: true },
    { text: ' is off: add ', isCode: false },
    { text: 'health: {}', isCode: true },
    { text: '.', isCode: false },
  ]);
  expect(toPieces('One ` alone is text.')).toEqual([{ text: 'One ` alone is text.', isCode: false }]);
});

describe('a condition leads to', () => {
  const targetsOf = (finding: Finding) =>
    toTargets(toCondition(finding)).map(({ section, replica, change }) => ({ section, replica, ...change }));

  test('the row of its replica', () => {
    expect(targetsOf(unreachable('a'))).toEqual([{ section: 'replicas-section', replica: 'a' }]);
  });

  test('the replicas of its model, and their requests', () => {
    const finding = { id: 'model_unavailable', subject: 'm', figures: { drained: 1, away: 2 } } as const;
    expect(targetsOf(finding)).toMatchObject([
      { section: 'replicas-section', replicas: { search: 'm' } },
      { section: 'records-section', filter: { model: 'm' }, list: 'latest' },
    ]);
    expect(targetsOf({ ...finding, subject: '*' })).toEqual([{ section: 'replicas-section' }]);
  });

  test('the refused requests of its tenant', () => {
    const figures = { limit: 'max_inflight', allowed: 8, used: 8, refused: 12, silent: 0, held: '' };
    expect(targetsOf({ id: 'tenant_limit_reached', subject: 'acme', figures })).toMatchObject([
      { section: 'records-section', filter: { tenant: 'acme' }, list: 'failures' },
    ]);
  });

  test('the row of the replica whose drain is not spread, or at which a rollout stopped', () => {
    const row = [{ section: 'replicas-section', replica: 'a' }];
    expect(targetsOf({ id: 'drains_not_spread', subject: 'a', figures: { gateways: 'g2' } })).toEqual(row);
    expect(targetsOf({ id: 'rollout_stopped', subject: 'a', figures: { reason: 'worse' } })).toEqual(row);
  });

  test('its part of the page, if it has no row', () => {
    expect(targetsOf({ id: 'records_dropped', subject: '', figures: { dropped: 3 } })).toEqual([
      { section: 'export-section' },
    ]);
    expect(
      targetsOf({
        id: 'redis_away',
        subject: '',
        figures: { reason: 'Redis does not answer (ECONNREFUSED)' },
      }),
    ).toEqual([{ section: 'replicas-section' }]);
    expect(targetsOf(unreachable('_OTHER'))).toEqual([{ section: 'replicas-section' }]);
  });

  test('nothing, if no part of the page says more', () => {
    const figures = { ago: 60, ends: '2026-01-01T00:00:00Z' };
    expect(targetsOf({ id: 'certificate_ended', subject: 'listen', figures })).toEqual([]);
    expect(targetsOf({ id: 'clock_stepped', subject: '', figures: { direction: 'back', step: 5 } })).toEqual(
      [],
    );
  });
});
