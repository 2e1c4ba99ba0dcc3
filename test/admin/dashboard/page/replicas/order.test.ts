import { describe, expect, test } from 'vitest';
import { makeReplica, makeReplicaTraffic, type OverviewReplica } from '#testkit/dashboard/made-overview.ts';
import { inOrderOf, toGroups } from '../../../../../src/admin/dashboard/page/replicas/order.js';

const ALL = { search: '', sort: null, isFlat: false };

const busy = (name: string, requests: number, changes: Partial<OverviewReplica> = {}) =>
  makeReplica({ name, last_minute: makeReplicaTraffic({ requests }), ...changes });

const namesOf = (groups: ReturnType<typeof toGroups>) =>
  groups.map(({ replicas }) => replicas.map(({ name }) => name));
const titlesOf = (groups: ReturnType<typeof toGroups>) => groups.map(({ title }) => title);

describe('without a sort', () => {
  test('replicas are grouped by their set of models, and what needs attention is first', () => {
    const groups = toGroups(
      [
        busy('a10', 1),
        busy('a2', 1),
        busy('n', 1, { models: ['n', 'o'] }),
        busy('z', 1, { reachability: 'unreachable' }),
        busy('o', 1, { models: ['o', 'n'] }),
        busy('y', 1, { health: 'failing' }),
        busy('b', 1, { drained: true, inflight: 0 }),
      ],
      ALL,
    );
    expect(titlesOf(groups)).toEqual(['m', 'n, o']);
    expect(namesOf(groups)).toEqual([
      ['z', 'y', 'b', 'a2', 'a10'],
      ['n', 'o'],
    ]);
  });

  test('the group with the most urgent replica is first, and a replica that fails requests before one that serves', () => {
    const failing = (errors: number) => ({ last_minute: makeReplicaTraffic({ requests: 100, errors }) });
    const groups = toGroups(
      [
        busy('a', 9, { models: ['a'] }),
        busy('b1', 9, { models: ['b'] }),
        busy('b2', 9, { models: ['b'], ...failing(30) }),
        busy('c1', 9, { models: ['c'] }),
        busy('c2', 9, { models: ['c'], ...failing(1) }),
        busy('d', 9, { models: ['d'], health: 'failing' }),
        busy('e', 9, { models: ['e'], drained: true, inflight: 0, ...failing(30) }),
        busy('f', 9, { models: ['f'], reachability: 'unreachable' }),
      ],
      ALL,
    );
    expect(namesOf(groups)).toEqual([['f'], ['d'], ['b2', 'b1'], ['e'], ['c2', 'c1'], ['a']]);
  });

  test('a group has a title whatever its models are called', () => {
    const replicas = [null, [], ['*'], ['__proto__'], ['1', '2', '3', '4', '5']].map((models, at) =>
      busy(`r${at}`, 1, { models }),
    );
    expect(titlesOf(toGroups(replicas, ALL)).toSorted()).toEqual([
      '1, 2, 3 and 2 more',
      'Any model',
      'Models unknown',
      'No models',
      '__proto__',
    ]);
  });
});

describe('a sort', () => {
  const replicas = [busy('a', 5), busy('b', 9, { models: ['n'] }), busy('c', 7), busy('d', 0)];

  test('applies within groups, and the group of the first replica is first', () => {
    const view = { ...ALL, sort: { column: 'requests', isDescending: true } };
    expect(namesOf(toGroups(replicas, view))).toEqual([['b'], ['c', 'a', 'd']]);
  });

  test('applies to all replicas of a flat list', () => {
    const view = { ...ALL, isFlat: true, sort: { column: 'requests', isDescending: false } };
    expect(namesOf(toGroups(replicas, view))).toEqual([['d', 'a', 'c', 'b']]);
  });

  test.each([true, false])('leaves unknown values last, descending or not: %s', (isDescending) => {
    const unknown = busy('x', 3, { last_minute: makeReplicaTraffic({ requests: 0, latency_p95_ms: null }) });
    const view = { ...ALL, isFlat: true, sort: { column: 'latency_p95', isDescending } };
    expect(namesOf(toGroups([unknown, ...replicas], view))[0]?.at(-1)).toBe('x');
  });
});

test.each([
  ['LLAMA', ['a']],
  ['unreach', ['b']],
  ['node-7 h100', ['c']],
  ['nothing', []],
  ['.*', []],
])('the search %s looks at names, models, hosts and states', (search, names) => {
  const replicas = [
    busy('a', 1, { models: ['meta-llama/Llama-3.3'] }),
    busy('b', 1, { reachability: 'unreachable' }),
    busy('c', 1, { host: 'gpu-node-7' }),
  ];
  const [group] = toGroups(replicas, { ...ALL, search, isFlat: true });
  expect(group?.replicas.map(({ name }) => name) ?? []).toEqual(names);
});

test('an order can be kept: known replicas stay, new ones come last, and gone ones are left out', () => {
  const before = toGroups([busy('a', 1), busy('b', 1), busy('c', 1)], ALL);
  const after = toGroups([busy('0', 1), busy('b', 1), busy('c', 1, { reachability: 'unreachable' })], ALL);
  expect(namesOf(after)).toEqual([['c', '0', 'b']]);
  expect(namesOf(inOrderOf(after, before))).toEqual([['b', 'c', '0']]);
});
