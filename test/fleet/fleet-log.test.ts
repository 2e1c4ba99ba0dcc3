import { expect, test } from 'vitest';
import { FleetLog } from '../../src/fleet/fleet-log.ts';
import { createFleetState } from '../../src/fleet/rules/fleet-state.ts';

function createLog(onDrain?: ConstructorParameters<typeof FleetLog>[1]) {
  const lines: string[] = [];
  const logAs = (level: string) => (fields: object, message: string) =>
    void lines.push(`${level} ${message} ${JSON.stringify(fields)}`);
  const logger = { info: logAs('info'), warn: logAs('warn'), error: logAs('error') };
  return { lines, log: new FleetLog(logger, onDrain) };
}

const gateway = (isAlive: boolean | null) => ({
  name: 'gw-b',
  id: '2',
  isSelf: false,
  isAlive,
  inflight: null,
  version: null,
});

test('a gateway that vanishes and returns is logged once each time', () => {
  const { lines, log } = createLog();
  for (const isAlive of [true, true, false, false, true]) log.seen([gateway(isAlive)]);
  expect(lines).toEqual([
    'info a gateway is alive {"gateway":"gw-b","id":"2"}',
    'warn a gateway has vanished: drains wait for it {"gateway":"gw-b","id":"2"}',
    'info a gateway is alive {"gateway":"gw-b","id":"2"}',
  ]);
});

test('a gateway of which nobody knows after an outage of the store has not vanished', () => {
  const { lines, log } = createLog();
  for (const isAlive of [true, null, true, null, false]) log.seen([gateway(isAlive)]);
  expect(lines).toEqual([
    'info a gateway is alive {"gateway":"gw-b","id":"2"}',
    'warn a gateway has vanished: drains wait for it {"gateway":"gw-b","id":"2"}',
  ]);
});

test('foreign data is named once for as long as it is there', () => {
  const { lines, log } = createLog();
  for (const names of [['a'], ['a'], ['a', 'b'], [], ['a']]) log.foreign(names);
  const line = (name: string) =>
    `warn the shared state contains data that no gateway wrote {"foreign":["${name}"]}`;
  expect(lines).toEqual([line('a'), line('b'), line('a')]);
});

test('drains, undrains and departures of other gateways are logged, and drains told', () => {
  const told: unknown[] = [];
  const { lines, log } = createLog((replica, { drained }) => told.push([replica, drained]));
  const drain = { drained: true, since: '2026-01-01T00:00:00.000Z', reason: 'new weights', version: '1' };
  const before = createFleetState({
    id: '1',
    home: '1',
    name: 'gw-a',
    members: new Map([['2', 'gw-b']]),
    removed: [],
    drains: new Map(),
  });
  const after = { ...before, members: new Map(), drains: new Map([['x', drain]]) };
  log.merged(before, after);
  log.merged(after, { ...after, drains: new Map([['x', { ...drain, drained: false, reason: null }]]) });
  log.merged(after, after);
  expect(told).toEqual([
    ['x', true],
    ['x', false],
  ]);
  expect(lines).toEqual([
    'info a gateway has left the fleet {"gateway":"gw-b","id":"2"}',
    'info received from the fleet {"action":"drain","replica":"x","reason":"new weights","since":"2026-01-01T00:00:00.000Z"}',
    'info received from the fleet {"action":"undrain","replica":"x","reason":null,"since":"2026-01-01T00:00:00.000Z"}',
  ]);
});
