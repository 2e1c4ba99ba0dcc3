import { describe, expect, test } from 'vitest';
import { LEAST_RECORD } from '#testkit/records/records.ts';
import { decidePrefixMiss, RecordedRoutes } from '../../../src/proxy/record/recorded-route.ts';

const TURN = { reason: 'turn', candidates: 3, ruledOut: null } as const;
const NEXT = { reason: 'next_after_failure', candidates: 1, ruledOut: { tried: 1 } } as const;
const PREFIX = { reason: 'prefix', candidates: 2, ruledOut: null } as const;

function fill(routes: RecordedRoutes, replica: string | undefined) {
  const record = { ...LEAST_RECORD, ...(replica === undefined ? {} : { replica }) };
  routes.fill(record);
  return Object.fromEntries(Object.entries(record).filter(([field]) => field.startsWith('route_')));
}

test('a record has the route to its replica, not to the last one that was tried', () => {
  const routes = new RecordedRoutes();
  expect(fill(routes, 'a')).toEqual({});
  routes.note('a', TURN);
  routes.note('b', NEXT);
  expect(fill(routes, 'a')).toEqual({ route_reason: 'turn' });
  expect(fill(routes, 'b')).toEqual({
    route_reason: 'next_after_failure',
    route_candidates: 1,
    route_ruled_out: { tried: 1 },
  });
  expect(fill(routes, undefined)).toEqual({});
});

test('only a choice by a prefix says how long and popular it is', () => {
  const routes = new RecordedRoutes();
  routes.prefix = { blocks: 4, chars: 2048, share: 0.25, last: 'here' };
  routes.note('a', TURN);
  expect(fill(routes, 'a')).not.toHaveProperty('route_prefix_blocks');
  routes.note('a', PREFIX);
  expect(fill(routes, 'a')).toMatchObject({ route_prefix_blocks: 4, route_prefix_share: 0.25 });
});

test('a name that is no printable ASCII is percent-encoded for the client', () => {
  const routes = new RecordedRoutes();
  expect(routes.fieldLines).toBe('');
  routes.note('vllm-a', TURN);
  expect(routes.fieldLines).toBe('X-Gateway-Replica: vllm-a\r\nX-Gateway-Route-Reason: turn\r\n');
  routes.note('sør\r\nX: y', TURN);
  expect(routes.fieldLines).toContain('X-Gateway-Replica: s%C3%B8r%0D%0AX%3A%20y\r\n');
});

describe('a prefix was missed', () => {
  const facts = (cached: number | undefined) => ({
    prompt_tokens: 200,
    prompt_chars: 1000,
    ...(cached === undefined ? {} : { cached_tokens: cached }),
  });
  const use = (last: 'here' | 'elsewhere' | 'nowhere') => ({ blocks: 1, chars: 500, share: 1, last });

  test('if less than half of its tokens came from the cache', () => {
    // 500 of 1,000 characters are about 100 of 200 tokens.
    expect(decidePrefixMiss(use('here'), facts(49))).toBe('evicted_or_restarted');
    expect(decidePrefixMiss(use('here'), facts(50))).toBeNull();
    expect(decidePrefixMiss(use('here'), { cached_tokens: 0 })).toBe('evicted_or_restarted');
    expect(decidePrefixMiss(use('here'), { cached_tokens: 1 })).toBeNull();
  });

  test('for a reason that the last request with it gives', () => {
    expect(decidePrefixMiss(use('elsewhere'), facts(0))).toBe('elsewhere');
    expect(decidePrefixMiss(use('nowhere'), facts(0))).toBe('never_seen');
  });

  test('only if the engine says what it cached', () => {
    expect(decidePrefixMiss(use('nowhere'), facts(undefined))).toBeNull();
  });
});
