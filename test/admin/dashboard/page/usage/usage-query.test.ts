import { describe, expect, test } from 'vitest';
import { makeRow, makeUsage } from '#testkit/dashboard/made-history.ts';
import {
  only,
  START_USAGE,
  toKeptText,
  toNotes,
  toQuery,
  toSpanText,
} from '../../../../../src/admin/dashboard/page/usage/usage-query.js';

const HERE = { nowMs: Date.parse('2026-03-01T00:30:00Z'), timeZone: 'America/New_York' };

describe('what is asked', () => {
  test('is by tenant, today, in the zone of the reader', () => {
    expect(toQuery(START_USAGE, HERE)).toEqual({
      since: 'today',
      by: 'tenant',
      time_zone: 'America/New_York',
      limit: '1000',
    });
  });

  test.each([
    ['yesterday', { since: 'yesterday', until: 'today' }],
    ['7d', { since: '7d' }],
    // In New York it is still February.
    ['month', { since: '2026-02-01' }],
    ['last_month', { since: '2026-01-01', until: '2026-02-01' }],
  ] as const)('the span %s is %o', (span, expected) => {
    expect(toQuery({ ...START_USAGE, span }, HERE)).toMatchObject(expected);
  });

  test.each([
    [
      { from: '2026-02-03', to: '2026-02-05' },
      { since: '2026-02-03', until: '2026-02-06' },
    ],
    [
      { from: '2026-02-05', to: '2026-02-03' },
      { since: '2026-02-03', until: '2026-02-06' },
    ],
    [
      { from: '2026-02-03', to: '' },
      { since: '2026-02-03', until: '2026-02-04' },
    ],
    [{ from: '', to: '' }, { since: 'today' }],
  ])('of the days %o the last one is included', (days, expected) => {
    const query = toQuery({ ...START_USAGE, span: 'days', ...days }, HERE);
    expect(query).toMatchObject(expected);
    expect('until' in query).toBe('until' in expected);
  });

  test('days that are not over end now', () => {
    const query = toQuery({ ...START_USAGE, span: 'days', from: '2026-02-20', to: '2026-02-28' }, HERE);
    expect(query).not.toHaveProperty('until');
  });

  test('is by two names, by steps, and only of one name', () => {
    const view = { ...START_USAGE, and: 'model', step: '1d', of: 'replica', named: 'a&b' } as const;
    expect(toQuery(view, HERE)).toMatchObject({ by: 'tenant,model', step: '1d', replica: 'a&b' });
    expect(toQuery({ ...view, and: 'tenant', named: '' }, HERE)).toMatchObject({ by: 'tenant' });
    expect(toQuery({ ...view, named: '' }, HERE)).not.toHaveProperty('replica');
  });

  test('after a press on a name is what else tells its requests apart', () => {
    expect(only(START_USAGE, 'tenant', 'acme')).toMatchObject({ of: 'tenant', named: 'acme', by: 'model' });
    expect(only(START_USAGE, 'model', 'm')).toMatchObject({ of: 'model', named: 'm', by: 'tenant' });
  });
});

describe('an answer', () => {
  test('says from when to when, in which zone, and how it was rounded', () => {
    const span = { since: '2026-11-20T23:00:00.000Z', until: '2026-11-21T12:10:00.000Z' };
    expect(toSpanText(makeUsage({ ...span, time_zone: 'Europe/Berlin' }))).toBe(
      'Nov 21, 2026, 00:00 to Nov 21, 2026, 13:10 (Europe/Berlin), by whole minutes',
    );
  });

  test('without a row says why', () => {
    const note = 'No request of this tenant is in what this gateway keeps: check the name.';
    const ofOne = { ...START_USAGE, of: 'tenant', named: 'nobody' } as const;
    // Others may have sent some.
    expect(toNotes(makeUsage({ note }), ofOne)).toEqual(['No such request arrived in this span.', note]);
    expect(toNotes(makeUsage({}), START_USAGE)[0]).toBe('No request arrived in this span.');
  });

  test('tells the times of a note in the zone of the reader, as all others', () => {
    const note = 'Requests before 2026-11-20T10:00:00Z are not kept.';
    expect(toNotes(makeUsage({ note }), START_USAGE).at(-1)).toMatch(
      /^Requests before Nov (19|20|21), 2026, \d\d:\d\d:00 are not kept\.$/,
    );
  });

  test('says what is missing and why, and how many gaps are older', () => {
    const gap = { from: '2026-11-21T10:00:00.000Z', until: '2026-11-21T10:01:00.000Z' };
    const gaps = [
      { ...gap, records: 3, reason: 'behind' as const },
      ...Array.from({ length: 6 }, () => ({ ...gap, records: null, reason: 'killed' as const })),
    ];
    const [first, second, ...others] = toNotes(makeUsage({ rows: [makeRow({})], gaps }), START_USAGE);
    expect(first).toMatch(/^3 requests are missing, .* to .*: the disk was full, read-only or too slow\.$/);
    expect(second).toMatch(/^Some requests may be missing, .* at most its last second is missing\.$/);
    expect(others.at(-1)).toBe('2 more gaps are older.');
  });

  test('says from when on sums are kept', () => {
    const usage = makeUsage();
    expect(toKeptText(usage)).toMatch(/^This gateway has sums by hour since .*, by minute since .*\.$/);
    const young = { ...usage, kept: { ...usage.kept, minutes_since: usage.kept.hours_since } };
    expect(toKeptText(young)).toMatch(/^This gateway has sums since .*\.$/);
  });
});
