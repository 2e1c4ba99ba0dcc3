import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ReplicaConfig } from '#replicas/terms';
import { toReplicaConfig } from '#testkit/pool.ts';
import { diffReplicas } from '../../../src/replicas/registry/replica-registry.ts';

const replica = (name: string, more: Partial<ReplicaConfig> = {}) => toReplicaConfig(name, 'auto', more);

const anyReplica = fc
  .record({
    name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
    url: fc.constantFrom('http://x.test', 'http://y.test'),
    gpuCount: fc.constantFrom(null, 8),
    apiKey: fc.constantFrom('k', 'l'),
    tlsName: fc.constantFrom('x.test', 'y.test'),
  })
  .map(({ name, ...more }) => replica(name, more));
const anyList = fc.uniqueArray(anyReplica, { selector: ({ name }) => name });

describe('the difference between two lists of replicas', () => {
  test('leads to the wanted ones in their order, and removes exactly the others', () => {
    fc.assert(
      fc.property(anyList, anyList, (present, wanted) => {
        const { steps, removed } = diffReplicas(present, wanted);
        expect(steps.map(({ config }) => config)).toEqual(wanted);
        const carriedOver = steps.filter(({ action }) => action !== 'add').map(({ config }) => config.name);
        expect([...carriedOver, ...removed].toSorted()).toEqual(present.map(({ name }) => name).toSorted());
      }),
    );
  });

  test('keeps every replica whose name stays on the same server', () => {
    fc.assert(
      fc.property(anyList, anyList, (present, wanted) => {
        for (const { config, action } of diffReplicas(present, wanted).steps) {
          const before = present.find(({ name }) => name === config.name);
          const isSameServer = before?.url === config.url && before.tlsName === config.tlsName;
          expect(action === 'keep' || action === 'configure').toBe(isSameServer);
        }
      }),
    );
  });

  test('is empty for the same replicas in any order', () => {
    fc.assert(
      fc.property(anyList, (present) => {
        const { steps, removed } = diffReplicas(present, structuredClone(present).toReversed());
        expect(steps.every(({ action }) => action === 'keep')).toBe(true);
        expect(removed).toEqual([]);
      }),
    );
  });
});

test.each<[string, Partial<ReplicaConfig>, string]>([
  ['nothing', {}, 'keep'],
  ['its hardware', { gpuModel: 'H200' }, 'configure'],
  ['its models', { models: ['m'] }, 'configure'],
  ['its key', { apiKey: 'other' }, 'configure'],
  ['its address', { url: 'http://elsewhere.test:8000' }, 'replace'],
])('a replica that changes %s', (_what, change, action) => {
  const { steps } = diffReplicas([replica('a')], [replica('a', change)]);
  expect(steps).toEqual([{ config: replica('a', change), action }]);
});
