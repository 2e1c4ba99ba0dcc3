import { expect, test } from 'vitest';
import { rampsOnJoining, toRampReports } from '../../../src/fleet/rules/ramps.ts';
import { OTHER, stampAt, THIRD } from '../model/states.ts';

const undrained = (rampMs?: number) => ({
  drained: false,
  since: null,
  reason: null,
  version: stampAt(10),
  ...(rampMs === undefined ? {} : { rampMs }),
});

const peer = (
  id: string,
  ramps: Record<string, { elapsedMs: number; durationMs: number }>,
  validUntilMs = 100,
) =>
  [
    id,
    {
      snapshot: null,
      heartbeat: {
        id,
        number: 1,
        revision: 1,
        heard: new Map(),
        drained: new Map(),
        inflight: new Map(),
        ramps: new Map(Object.entries(ramps)),
      },
      validUntilMs,
    },
  ] as const;

test('a gateway that joins takes over each ramp as far as the others have it', () => {
  const drains = new Map([
    ['a', undrained(60_000)],
    ['over', undrained(60_000)],
    ['none', undrained()],
  ]);
  const peers = new Map([
    peer(OTHER, { a: { elapsedMs: 10_000, durationMs: 60_000 } }),
    peer(THIRD, { a: { elapsedMs: 11_000, durationMs: 60_000 } }),
  ]);
  expect(rampsOnJoining({ drains, peers }, 50)).toEqual(
    new Map([
      ['a', { elapsedMs: 11_000, durationMs: 60_000 }],
      ['over', null],
    ]),
  );
});

test('a gateway that is alone, or hears only old heartbeats, keeps the ramps that it has', () => {
  const drains = new Map([['a', undrained(60_000)]]);
  expect(rampsOnJoining({ drains, peers: new Map() }, 50).size).toBe(0);
  expect(rampsOnJoining({ drains, peers: new Map([peer(OTHER, {})]) }, 200).size).toBe(0);
});

test('an undrain that waits to be applied is reported at the beginning of its ramp', () => {
  const drains = new Map([
    ['waits', undrained(60_000)],
    ['on', undrained(60_000)],
    ['over', undrained(60_000)],
  ]);
  const applied = new Map(['on', 'over'].map((name) => [name, stampAt(10)]));
  const rampOf = (name: string) => (name === 'on' ? { elapsedMs: 7, durationMs: 60_000 } : null);
  expect(toRampReports({ drains, applied }, rampOf)).toEqual(
    new Map([
      ['waits', { elapsedMs: 0, durationMs: 60_000 }],
      ['on', { elapsedMs: 7, durationMs: 60_000 }],
    ]),
  );
});

test('neither a drained replica nor an undrain without a ramp has a ramp to report or to take over', () => {
  const drains = new Map([
    ['drained', { ...undrained(60_000), drained: true }],
    ['none', undrained()],
  ]);
  const ramp = { elapsedMs: 7, durationMs: 60_000 };
  const applied = new Map(['drained', 'none'].map((name) => [name, stampAt(10)]));
  expect(toRampReports({ drains, applied }, () => ramp).size).toBe(0);
  const peers = new Map([peer(OTHER, { drained: ramp, none: ramp })]);
  expect(rampsOnJoining({ drains, peers }, 50).size).toBe(0);
});

test('a gateway that joins hears those whose heartbeat is valid, and takes none over from one that tells of none', () => {
  const drains = new Map([['a', undrained(60_000)]]);
  const heard = new Map([peer(OTHER, { a: { elapsedMs: 1, durationMs: 60_000 } })]);
  expect([99, 100].map((nowMs) => rampsOnJoining({ drains, peers: heard }, nowMs).size)).toEqual([1, 0]);
  const [id, { heartbeat }] = peer(OTHER, {});
  const { ramps: _, ...older } = heartbeat;
  const silent = new Map([[id, { snapshot: null, heartbeat: older, validUntilMs: 100 }]]);
  expect(rampsOnJoining({ drains, peers: silent }, 50)).toEqual(new Map([['a', null]]));
  const unread = new Map([[id, { snapshot: null, heartbeat: null, validUntilMs: 100 }]]);
  expect(rampsOnJoining({ drains, peers: unread }, 50).size).toBe(0);
});
