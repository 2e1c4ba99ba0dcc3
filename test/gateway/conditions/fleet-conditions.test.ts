import { expect, test } from 'vitest';
import { createFleetProducer } from '../../../src/gateway/conditions/fleet-conditions.ts';
import { madeRegistry } from './made-registry.ts';

const replicas = madeRegistry([{ name: 'a', drained: true }, { name: 'b' }]);

/** `others`: the version of each gateway, by name. */
function findingsOf(
  gateways: Readonly<Record<string, string | null>>,
  unconfirmed: readonly string[] = [],
  failure: string | null = null,
) {
  const fleet = {
    failure,
    gateways: () =>
      Object.entries(gateways).map(([name, version]) => ({
        name,
        version,
        id: name,
        isSelf: false,
        isAlive: true,
        inflight: 0,
      })),
    drainStatusOf: () => ({
      safeToStop: null,
      inflight: 0,
      background: { running: 0, unknown: 0 },
      unconfirmed,
    }),
  };
  return [...createFleetProducer({ fleet, registry: replicas })()];
}

test('gateways of different versions are told with their names', () => {
  expect(findingsOf({ 'gw-1': '0.2.0', 'gw-2': '0.1.0', 'gw-3': '0.2.0' })).toEqual([
    {
      id: 'gateway_versions_differ',
      subject: '',
      figures: { versions: '0.2.0 (gw-1, gw-3), 0.1.0 (gw-2)' },
    },
  ]);
  expect(findingsOf({ 'gw-1': '0.2.0', 'gw-2': '0.2.0' })).toEqual([]);
});

test('a gateway that does not tell its version has no other one', () => {
  expect(findingsOf({ 'gw-1': '0.2.0', 'gw-2': null })).toEqual([]);
});

test('a drain that others have not confirmed is told with their names', () => {
  expect(findingsOf({}, ['gw-2', 'gw-3'])).toEqual([
    { id: 'drains_not_spread', subject: 'a', figures: { gateways: 'gw-2, gw-3' } },
  ]);
  const many = Array.from({ length: 8 }, (_, number) => `gw-${number}`);
  expect(findingsOf({}, many)[0]?.figures).toEqual({ gateways: 'gw-0, gw-1, gw-2, gw-3, gw-4 and 3 more' });
});

test('while Redis is away, nothing else is known', () => {
  expect(
    findingsOf({ 'gw-1': '0.2.0', 'gw-2': '0.1.0' }, ['gw-2'], 'Redis does not answer (ECONNREFUSED)'),
  ).toEqual([{ id: 'redis_away', subject: '', figures: { reason: 'Redis does not answer (ECONNREFUSED)' } }]);
});
