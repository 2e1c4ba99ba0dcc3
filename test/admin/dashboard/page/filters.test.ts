import { expect, test } from 'vitest';
import { matches, NO_FILTER, namesIn, toStatusGroup } from '../../../../src/admin/dashboard/page/filters.js';
import { FULL_RECORD, LEAST_RECORD } from '../../../otel/records.ts';

const RECORD = { ...LEAST_RECORD, replica: 'a', model: 'm', tenant: 'acme' };

test.each([
  [{ status: 200 }, 'success'],
  [{ status: 200, error_type: 'upstream_failed' }, 'server_error'],
  [{ status: 502, error_type: 'upstream_failed' }, 'server_error'],
  [{ status: 404, error_type: 'model_not_found' }, 'client_error'],
  [{ status: 499, error_type: 'client_closed' }, 'left'],
  [{ status: 200, error_type: 'client_closed' }, 'left'],
])('%o is of the group %s', (end, group) => {
  expect(toStatusGroup({ ...LEAST_RECORD, ...end })).toBe(group);
});

test('every part of a filter has to let a record through', () => {
  expect(matches(RECORD, NO_FILTER)).toBe(true);
  expect(matches(RECORD, { ...NO_FILTER, replica: 'a', model: 'm', tenant: 'acme', status: 'success' })).toBe(
    true,
  );
  for (const part of [{ replica: 'b' }, { model: 'M' }, { tenant: 'acm' }, { status: 'left' as const }]) {
    expect(matches(RECORD, { ...NO_FILTER, ...part })).toBe(false);
  }
});

test('an empty name lets through what has none', () => {
  expect(matches(LEAST_RECORD, { ...NO_FILTER, tenant: '' })).toBe(true);
  expect(matches(RECORD, { ...NO_FILTER, tenant: '' })).toBe(false);
});

test('the names to choose from are those of the records, each once, an empty one for none', () => {
  expect(namesIn([RECORD, FULL_RECORD, LEAST_RECORD, RECORD], 'replica')).toEqual(['', 'a', 'vllm-a']);
});
