import { expect, test } from 'vitest';
import { PairLog } from '#comparisons';
import { createReplicaProducer } from '../../../src/gateway/conditions/replica-conditions.ts';
import { madeRegistry } from './made-registry.ts';

test('a shadow that takes all copies that it may have and ends none is told until one ends', () => {
  let nowMs = 0;
  const log = new PairLog(() => nowMs);
  const names = ['shadow', 'busy', 'served'];
  const registry = madeRegistry(names.map((name) => ({ name, isShadow: name !== 'served', inflight: 8 })));
  const told = () => [...createReplicaProducer(registry, log)()];
  for (const name of names) log.noteSkipped(name, 'shadow_full', 25);
  nowMs += 9_000;
  log.noteEnded('busy');
  expect(told()).toEqual([]);
  nowMs += 3_000;
  expect(told()).toEqual([{ id: 'shadow_silent', subject: 'shadow', figures: { inflight: 8, silence: 12 } }]);
  log.noteEnded('shadow');
  nowMs += 60_000;
  expect(told()).toEqual([]);
});
