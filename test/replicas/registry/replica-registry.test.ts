import { expect, test } from 'vitest';
import { MAX_REPLICAS } from '#replicas/shared';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';

const AT = '2026-01-01T00:00:00.000Z';

/** So many replicas, named after their numbers. */
const numbered = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => toReplicaConfig(`r${from + index}`));

test('of more replicas than there is room for, new optional ones are left out, and those that stay stay', () => {
  const present = numbered(MAX_REPLICAS - 1);
  const { registry, publish } = createPools(present);
  const more = numbered(3, MAX_REPLICAS);
  const wanted = [...more, ...present];
  const fitting = registry.takeFitting(wanted, new Set(wanted));
  expect(fitting).toEqual([more[0], ...present]);

  registry.configure(fitting, AT);
  publish();
  // Two that are gone make room for two of those that were left out.
  const later = [...more, ...present.slice(2)];
  registry.configure(registry.takeFitting(later, new Set(later)), AT);
  publish();
  expect(registry.takeFitting(later, new Set(later))).toEqual(later);
});

test('replicas that are not optional take the room of those that are', () => {
  const present = numbered(MAX_REPLICAS - 1);
  const { registry } = createPools(present);
  const [needed, ...optional] = numbered(2, MAX_REPLICAS);
  const fitting = registry.takeFitting(
    [...present, ...optional, ...(needed ? [needed] : [])],
    new Set(optional),
  );
  expect(fitting).toEqual([...present, needed]);
});

test('a response in the background counts once by name when its replica was removed and is back', () => {
  const config = toReplicaConfig('a');
  const { registry, background, publish } = createPools([config]);
  background.set(config, { running: 1, unknown: 2 }, 0, Number.POSITIVE_INFINITY);
  for (const configs of [[], [config]]) {
    registry.configure(configs, AT);
    publish();
  }
  expect(registry.all).toHaveLength(2);
  expect(registry.backgroundByName()).toEqual(new Map([['a', { running: 1, unknown: 2 }]]));
});
