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
        ...{ id, number: 1, revision: 1, heard: new Map(), drained: new Map(), inflight: new Map() },
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
