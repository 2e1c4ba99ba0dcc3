import { expect, test } from 'vitest';
import { FULL_RECORD, LEAST_RECORD } from '#testkit/records/records.ts';
import {
  matches,
  NO_FILTER,
  namesIn,
  toStatusGroup,
} from '../../../../../src/admin/dashboard/page/records/filters.js';

const RECORD = { ...LEAST_RECORD, replica: 'a', model: 'm', tenant: 'acme' };

test.each([
  [{ status: 200 }, 'success'],
  [{ status: 200, error_type: 'upstream_failed' }, 'server_error'],
  [{ status: 502, error_type: 'upstream_failed' }, 'server_error'],
  [{ status: 404, error_type: 'model_not_found' }, 'client_error'],
  [{ status: 499, error_type: 'client_closed' }, 'disconnected'],
  [{ status: 200, error_type: 'client_closed' }, 'disconnected'],
])('%o is in the group %s', (end, group) => {
  expect(toStatusGroup({ ...LEAST_RECORD, ...end })).toBe(group);
});

test('a record must match every part of a filter', () => {
  expect(matches(RECORD, NO_FILTER)).toBe(true);
  expect(matches(RECORD, { ...NO_FILTER, replica: 'a', model: 'm', tenant: 'acme', status: 'success' })).toBe(
    true,
  );
  for (const part of [
    { replica: 'b' },
    { model: 'M' },
    { error_type: 'upstream_failed' },
    { tenant: 'acm' },
    { status: 'disconnected' as const },
  ]) {
    expect(matches(RECORD, { ...NO_FILTER, ...part })).toBe(false);
  }
});

test('an empty name matches records without one', () => {
  expect(matches(LEAST_RECORD, { ...NO_FILTER, tenant: '' })).toBe(true);
  expect(matches(RECORD, { ...NO_FILTER, tenant: '' })).toBe(false);
});

test('the names in the records are listed once each, with an empty one for records without', () => {
  expect(namesIn([RECORD, FULL_RECORD, LEAST_RECORD, RECORD], 'replica')).toEqual(['', 'a', 'vllm-a']);
});
