import { expect, test } from 'vitest';
import { FleetLog } from '../../src/fleet/fleet-log.ts';
import { beginFleet } from '../../src/fleet/fleet-state.ts';

function createLog() {
  const lines: string[] = [];
  const say = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  return { lines, log: new FleetLog({ info: say('info'), warn: say('warn'), error: say('error') }) };
}

const gateway = (isAlive: boolean) => ({ name: 'gw-b', id: '2', isSelf: false, isAlive, inflight: null });

test('the shared state is told to be away once, and once to be back', () => {
  const { lines, log } = createLog();
  log.reachable([]);
  for (let round = 0; round < 3; round++) log.unreachable('ECONNREFUSED');
  for (let round = 0; round < 3; round++) log.reachable([]);
  expect(lines).toEqual([
    'warn the shared state cannot be reached {"reason":"ECONNREFUSED"}',
    'info the shared state can be reached again {}',
  ]);
});

test('a gateway that vanishes and comes back is told of, once each', () => {
  const { lines, log } = createLog();
  for (const isAlive of [true, true, false, false, true]) log.reachable([gateway(isAlive)]);
  expect(lines).toEqual([
    'info a gateway is heard {"gateway":"gw-b","id":"2"}',
    'warn a gateway has vanished: drains wait for it {"gateway":"gw-b","id":"2"}',
    'info a gateway is heard {"gateway":"gw-b","id":"2"}',
  ]);
});

test('what no gateway wrote is named once for as long as it is there', () => {
  const { lines, log } = createLog();
  for (const names of [['a'], ['a'], ['a', 'b'], [], ['a']]) log.foreign(names);
  const said = (name: string) => `warn the shared state holds what no gateway wrote {"foreign":["${name}"]}`;
  expect(lines).toEqual([said('a'), said('b'), said('a')]);
});

test('what others drained and undrained is told of, and who left', () => {
  const { lines, log } = createLog();
  const drain = { drained: true, since: '2026-01-01T00:00:00.000Z', reason: 'new weights', version: '1' };
  const before = beginFleet({
    id: '1',
    name: 'gw-a',
    members: new Map([['2', 'gw-b']]),
    removed: [],
    drains: new Map(),
  });
  const after = { ...before, members: new Map(), drains: new Map([['x', drain]]) };
  log.heard(before, after);
  log.heard(after, { ...after, drains: new Map([['x', { ...drain, drained: false, reason: null }]]) });
  log.heard(after, after);
  expect(lines).toEqual([
    'info a gateway has left the fleet {"gateway":"gw-b","id":"2"}',
    'info heard of by the fleet {"action":"drain","replica":"x","reason":"new weights","since":"2026-01-01T00:00:00.000Z"}',
    'info heard of by the fleet {"action":"undrain","replica":"x","reason":null,"since":"2026-01-01T00:00:00.000Z"}',
  ]);
});
