import { expect, test } from 'vitest';
import { PairLog } from '#comparisons';
import { createReplicaProducer } from '../../../src/gateway/conditions/replica-conditions.ts';
import { madeRegistry } from './made-registry.ts';

test('a shadow that takes all copies that it may have and ends none is told until one ends', () => {
  let nowMs = 0;
  const log = new PairLog({ sinceMsOf: () => 0, nowMs: () => nowMs });
  const names = ['shadow', 'busy', 'served'];
  const registry = madeRegistry(names.map((name) => ({ name, isShadow: name !== 'served', inflight: 8 })));
  const told = () => [...createReplicaProducer(registry, log)()];
  for (const name of names) log.noteSkipped(name, 'shadow_full', 25);
  nowMs += 9_000;
  log.noteEnded('busy', 1_000);
  expect(told()).toEqual([]);
  nowMs += 3_000;
  expect(told()).toEqual([{ id: 'shadow_silent', subject: 'shadow', figures: { inflight: 8, silence: 12 } }]);
  log.noteEnded('shadow', 1_000);
  nowMs += 60_000;
  expect(told()).toEqual([]);
});

test('a shadow is not silent because the server was that had its name before', () => {
  let [nowMs, changedMs] = [20_000, 0];
  const log = new PairLog({ sinceMsOf: () => changedMs, nowMs: () => nowMs });
  const registry = madeRegistry([{ name: 'shadow', isShadow: true, inflight: 8 }]);
  log.noteSkipped('shadow', 'shadow_full', 25);
  nowMs += 12_000;
  changedMs = nowMs;
  expect([...createReplicaProducer(registry, log)()]).toEqual([]);
  log.noteSkipped('shadow', 'shadow_full', 25);
  nowMs += 12_000;
  log.noteEnded('shadow', 15_000);
  expect([...createReplicaProducer(registry, log)()]).toMatchObject([{ id: 'shadow_silent' }]);
});
