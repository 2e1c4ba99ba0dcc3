import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseView, START_VIEW, toFragment } from '../../../../../src/admin/dashboard/page/app/view.js';
import { NO_FILTER } from '../../../../../src/admin/dashboard/page/records/filters.js';
import { START_USAGE } from '../../../../../src/admin/dashboard/page/usage/usage-query.js';

test('the view at the start needs no fragment', () => {
  expect(toFragment(START_VIEW)).toBe('');
  expect(parseView('')).toEqual(START_VIEW);
  expect(parseView('#')).toEqual(START_VIEW);
});

test('a view survives its way through the URL, whatever its names contain', () => {
  const name = fc.option(fc.string({ unit: 'grapheme', maxLength: 40 }));
  const view = fc.record({
    range: fc.constantFrom('5m' as const, '1h' as const, '7d' as const),
    usage: fc.option(
      fc.record({
        by: fc.constantFrom('tenant' as const, 'model' as const),
        and: fc.option(fc.constantFrom('replica' as const, 'endpoint' as const)),
        span: fc.constantFrom('today' as const, 'last_month' as const, 'days' as const),
        from: fc.constantFrom('', '2026-11-21'),
        to: fc.constantFrom('', '2026-11-22'),
        step: fc.constantFrom('' as const, '1h' as const),
        of: fc.option(fc.constantFrom('tenant' as const, 'client' as const)),
        named: fc.string({ unit: 'grapheme', maxLength: 40 }),
      }),
    ),
    replicas: fc.record({
      search: fc.string({ unit: 'grapheme', maxLength: 40 }),
      sort: fc.option(
        fc.record({ column: fc.constantFrom('name', 'errors', 'latency_p95'), isDescending: fc.boolean() }),
      ),
      isFlat: fc.boolean(),
    }),
    list: fc.constantFrom('latest' as const, 'failures' as const),
    filter: fc.record({
      replica: name,
      model: name,
      tenant: name,
      error_type: name,
      status: fc.constantFrom('' as const, 'success' as const, 'server_error' as const),
    }),
    record: fc.option(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 })),
    find: fc.option(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 })),
  });
  fc.assert(
    fc.property(view, (given) => {
      expect(parseView(`#${toFragment(given)}`)).toEqual(given);
    }),
  );
});

test.each([
  '#sort=__proto__',
  '#sort=-constructor',
  '#status=toString&list=hasOwnProperty',
  '#unknown=1&__proto__=2&flat=yes',
  '#%E0%A4%A',
])('what the page has not written is ignored: %s', (fragment) => {
  expect(parseView(fragment)).toEqual(START_VIEW);
});

test('usage that the page has not written is its start', () => {
  const fragment = '#view=usage&by=__proto__&span=constructor&step=1ms&of=toString';
  expect(parseView(fragment).usage).toEqual(START_USAGE);
});

test('a text is cut, and a filter without a value means records without a name', () => {
  expect(parseView(`#search=${'x'.repeat(100_000)}`).replicas.search).toHaveLength(256);
  expect(parseView('#tenant=&model=m').filter).toEqual({ ...NO_FILTER, tenant: '', model: 'm' });
});
