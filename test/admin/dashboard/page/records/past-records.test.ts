import { expect, test } from 'vitest';
import { toRange } from '../../../../../src/admin/dashboard/page/history/range.js';
import { NO_FILTER } from '../../../../../src/admin/dashboard/page/records/filters.js';
import { toRecordsQuery } from '../../../../../src/admin/dashboard/page/records/past-records.js';

const ask = (filter: Partial<typeof NO_FILTER>, list: 'latest' | 'failures' = 'latest') =>
  toRecordsQuery({ range: toRange('7d'), list, filter: { ...NO_FILTER, ...filter } });

test('the records of a range are asked for by the names that the history finds', () => {
  expect(ask({})).toEqual({ since: '7d', limit: '200' });
  expect(ask({ replica: 'a', model: 'm', tenant: 't', error_type: 'x' })).toEqual({
    since: '7d',
    limit: '200',
    replica: 'a',
    model: 'm',
    tenant: 't',
  });
});

test('what the history cannot select is left to the page', () => {
  expect(ask({ tenant: '', status: 'disconnected' })).toEqual({ since: '7d', limit: '200' });
});

test.each([
  [{ status: 'success' as const }, 'latest' as const, { failed: 'false' }],
  [{ status: 'server_error' as const }, 'latest' as const, { failed: 'true' }],
  [{ status: 'client_error' as const }, 'latest' as const, { status: '4xx' }],
  [{ status: 'client_error' as const }, 'failures' as const, { status: '4xx', failed: 'true' }],
  [{ status: 'success' as const }, 'failures' as const, { failed: 'true' }],
])('of the status %o in the list of %s are %o', (filter, list, expected) => {
  expect(ask(filter, list)).toEqual({ since: '7d', limit: '200', ...expected });
});
