import { expect, test } from 'vitest';
import { RolloutWatch } from '../../../src/gateway/conditions/rollout-conditions.ts';

type Step = Parameters<RolloutWatch['note']>[0];

function createWatch() {
  let nowMs = 0;
  const watch = new RolloutWatch(() => nowMs);
  return {
    pass: (minutes: number) => {
      nowMs += minutes * 60_000;
    },
    tell: (step: Step['step'], outcome: Step['outcome'], more: Partial<Step> = {}) =>
      watch.note({
        ...{ action: 'rollout_step', traceId: 't1', spanId: 's', parentSpanId: null, step, outcome },
        ...{ startEpochMs: 0, replica: null, sentence: null, figures: {}, tokenName: null },
        ...more,
      }),
    told: () => [...watch.produce()].map(({ subject, figures }) => [subject, figures]),
  };
}

const a = { replica: 'a' };
const bad = { replica: 'a', sentence: 'slower than its peers' };

test('a rollout that stops is told with the replica and its reason, for an hour', () => {
  const { tell, told, pass } = createWatch();
  tell('restart', 'ok', a);
  tell('replica', 'bad', bad);
  // Others that are under way still end.
  tell('replica', 'ok', { replica: 'b' });
  expect(told()).toEqual([]);
  tell('rollout', 'bad', { sentence: '1 of 3 replicas done' });
  expect(told()).toEqual([['a', { reason: 'slower than its peers' }]]);
  pass(59);
  expect(told()).toHaveLength(1);
  pass(1);
  expect(told()).toEqual([]);
});

test('it is over when it goes on, and when another one begins', () => {
  for (const traceId of ['t1', 't2']) {
    const { tell, told } = createWatch();
    tell('restart', 'failed', a);
    tell('rollout', 'interrupted');
    expect(told()).toEqual([['a', { reason: 'interrupted' }]]);
    tell('rollout_drain', 'ok', { traceId, replica: 'b' });
    expect(told()).toEqual([]);
  }
});

test('one that is done, or that changed nothing, has not stopped', () => {
  const { tell, told } = createWatch();
  tell('restart', 'ok', a);
  tell('rollout', 'ok');
  expect(told()).toEqual([]);
  tell('rollout_drain', 'failed', { traceId: 't2', ...a });
  tell('replica', 'failed', { traceId: 't2', ...a });
  tell('rollout', 'failed', { traceId: 't2' });
  expect(told()).toEqual([]);
});

test('one that tells nothing for 45 minutes in the middle has stopped', () => {
  const { tell, told, pass } = createWatch();
  tell('restart', 'ok', a);
  pass(44);
  expect(told()).toEqual([]);
  pass(1);
  expect(told()).toEqual([['a', { reason: 'it has told nothing for 45 minutes' }]]);
  pass(60);
  expect(told()).toEqual([]);
});
