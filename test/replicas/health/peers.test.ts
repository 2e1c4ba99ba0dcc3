import { describe, expect, test } from 'vitest';
import type { ReplicaConfig } from '#replicas/terms';
import { createPools, toReplicaConfig } from '#testkit/pool.ts';
import { canBeSpared, PeerFinder } from '../../../src/replicas/health/peers.ts';

/** The peers of `a` among these replicas, after what is done to them. */
function peersOfA(
  others: readonly ReplicaConfig[],
  {
    own = toReplicaConfig('a'),
    prepare = () => undefined,
  }: { own?: ReplicaConfig; prepare?: (pools: ReturnType<typeof createPools>) => void } = {},
): readonly string[] {
  const pools = createPools([own, ...others]);
  pools.shared.health.configure({
    passive: true,
    active: true,
    failures: 1,
    coolDownMs: 0,
    frozenAfterMs: null,
    peers: {},
  });
  prepare(pools);
  return new PeerFinder().peersAt(0, pools.registry.replicas);
}

describe('the peers of a replica', () => {
  test('serve a model of its own', () => {
    const others = [
      toReplicaConfig('same', ['m', 'n']),
      toReplicaConfig('other', ['n']),
      toReplicaConfig('any', ['*']),
      toReplicaConfig('unknown', 'auto'),
    ];
    expect(peersOfA(others)).toEqual(['same', 'any']);
    expect(peersOfA(others, { own: toReplicaConfig('a', 'auto') })).toEqual(['unknown']);
  });

  test('have the same hardware, as far as that is configured', () => {
    const h100 = { gpuModel: 'H100', gpuCount: 8 };
    const others = [
      toReplicaConfig('same', ['m'], h100),
      toReplicaConfig('fewer', ['m'], { ...h100, gpuCount: 4 }),
      toReplicaConfig('older', ['m'], { ...h100, gpuModel: 'A100' }),
      toReplicaConfig('unknown'),
    ];
    expect(peersOfA(others, { own: toReplicaConfig('a', ['m'], h100) })).toEqual(['same']);
  });

  test('take their even share of the turns', () => {
    const others = ['drained', 'failing', 'away', 'ramping', 'fine'].map((name) => toReplicaConfig(name));
    const prepare = ({ registry, shared, drains, setDrained }: ReturnType<typeof createPools>) => {
      const slotOf = (name: string) => registry.find(name)?.slot ?? -1;
      setDrained('drained', true);
      shared.health.markFailing(slotOf('failing'), 'probes');
      shared.reachability.note(slotOf('away'), 'connection_refused');
      setDrained('ramping', true);
      drains.set('ramping', false, { reason: null, at: '2026-01-01T00:00:00.000Z', rampMs: 60_000 });
    };
    expect(peersOfA(others, { prepare })).toEqual(['fine']);
  });

  test('are at most sixteen, the next ones in the order of the configuration', () => {
    const names = Array.from({ length: 40 }, (_, index) => `r${index}`);
    const { registry } = createPools(names.map((name) => toReplicaConfig(name)));
    expect(new PeerFinder().peersAt(38, registry.replicas)).toEqual(['r39', ...names.slice(0, 15)]);
  });
});

describe('a replica can be spared', () => {
  const canSpareA = (models: readonly (readonly string[])[], drained: readonly string[], share: number) => {
    const names = ['a', 'b', 'c', 'd'].slice(0, models.length);
    const { registry, setDrained } = createPools(
      names.map((name, index) => toReplicaConfig(name, [...(models[index] ?? [])])),
    );
    for (const name of drained) setDrained(name, true);
    const a = registry.find('a');
    return a !== undefined && canBeSpared(a, registry.replicas, share);
  };

  test.each([
    ['the other of two', [['m'], ['m']], [], 0.5, true],
    ['the last one', [['m']], [], 0.99, false],
    ['with the other one drained', [['m'], ['m']], ['b'], 0.99, false],
    ['the first of four', [['m'], ['m'], ['m'], ['m']], [], 0.5, true],
    ['the second of four', [['m'], ['m'], ['m'], ['m']], ['b'], 0.5, true],
    ['the third of four', [['m'], ['m'], ['m'], ['m']], ['b', 'c'], 0.5, false],
    ['the second of three', [['m'], ['m'], ['m']], ['b'], 0.5, false],
    ['by a share that makes less than one', [['m'], ['m'], ['m'], ['m']], [], 0.2, false],
    ['one that is the last of another model', [['m', 'n'], ['m'], ['m']], [], 0.9, false],
  ] as const)('%s', (_title, models, drained, share, expected) => {
    expect(canSpareA(models, drained, share)).toBe(expected);
  });
});
