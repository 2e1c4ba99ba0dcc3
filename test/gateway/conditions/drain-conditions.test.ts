import { expect, test } from 'vitest';
import { createDrainProducer } from '../../../src/gateway/conditions/drain-conditions.ts';
import { type MadeReplica, madeRegistry } from './made-registry.ts';

const NOW_MS = Date.parse('2026-01-01T12:00:00Z');
const findingsOf = (...replicas: MadeReplica[]) => [
  ...createDrainProducer(madeRegistry(replicas), () => NOW_MS)(),
];

test('a drain is old after an hour, and says why it was made', () => {
  const young = { name: 'young', drained: true, since: '2026-01-01T11:00:01Z' };
  const old = { name: 'old', drained: true, since: '2026-01-01T10:00:00Z', drainReason: 'new weights' };
  expect(findingsOf(young, old, { name: 'well' })).toEqual([
    {
      id: 'drain_old',
      subject: 'old',
      figures: { age: 7200, reason: ': new weights' },
      sinceEpochMs: Date.parse('2026-01-01T11:00:00Z'),
    },
  ]);
});

test('a drain without a reason, or by removal, or of an unknown time', () => {
  const since = '2026-01-01T10:00:00Z';
  expect(findingsOf({ name: 'a', drained: true, since })[0]?.figures).toMatchObject({ reason: '' });
  expect(findingsOf({ name: 'a', drained: true, since, isRemoving: true })).toEqual([]);
  expect(findingsOf({ name: 'a', drained: true, since: null })).toEqual([]);
});

test('a reason cannot break the line', () => {
  const [finding] = findingsOf({
    name: 'a',
    drained: true,
    since: '2026-01-01T10:00:00Z',
    drainReason: `x\n\u001b[2J${'y'.repeat(9_999)}`,
  });
  const reason = String(Object.values(finding?.figures ?? {}).at(-1));
  expect(reason).toMatch(/^: x *\[2Jy+$/);
  expect(reason.length).toBeLessThan(1_000);
});
