import { expect, test } from 'vitest';
import { createOverloadProducer } from '../../../src/gateway/conditions/machine-conditions.ts';

const OVERLOADED = { error_type: 'overloaded' } as const;

function createOverload() {
  const clock = { nowMs: 0 };
  const { note, produce } = createOverloadProducer(() => clock.nowMs);
  return {
    clock,
    note: (record: object) => note(record as Parameters<typeof note>[0]),
    found: () => [...produce()].map(({ id, figures }) => ({ id, ...figures })),
  };
}

test('refused requests count for a minute, and end ten seconds after the last', () => {
  const overload = createOverload();
  overload.note({ error_type: 'upstream_failed', model: 'm' });
  expect(overload.found()).toEqual([]);
  overload.note({ ...OVERLOADED, model: 'm' });
  overload.clock.nowMs = 9_000;
  overload.note({ ...OVERLOADED, model: 'm' });
  const reason = 'no replica has room (`max_inflight`, `limits.queue`)';
  expect(overload.found()).toEqual([{ id: 'overloaded', refused: 2, reason }]);
  overload.clock.nowMs = 18_999;
  expect(overload.found()).toHaveLength(1);
  overload.clock.nowMs = 19_000;
  expect(overload.found()).toEqual([]);
});

test('a request whose body was not read was refused for its memory', () => {
  const overload = createOverload();
  overload.note(OVERLOADED);
  expect(overload.found()).toMatchObject([{ reason: expect.stringContaining('limits.buffered') }]);
});
