import { describe, expect, test } from 'vitest';
import { beginFleet, composeBeat, type FleetState } from '../../src/fleet/fleet-state.ts';
import { type FleetEvent, reconcile } from '../../src/fleet/reconcile.ts';
import type { Beat, Ledger } from '../../src/fleet/sheets.ts';
import { findVanished, isJoined, listGateways, standingOf } from '../../src/fleet/standing.ts';
import { BELIEF_MS, PROMISE_MS, SETTLED_MS } from '../../src/fleet/timing.ts';
import { nextLogicalTimestamp } from '../../src/replicas/control/logical-timestamp.ts';

const stampAt = (epochMs: number) => nextLogicalTimestamp('', epochMs, '0123456789ab');
const [SELF, OTHER, THIRD, FRESH] = [1, 2, 3, 4].map(stampAt) as [string, string, string, string];
const VERSION = stampAt(10);
const DRAIN = { drained: true, since: null, reason: null, version: VERSION };

/** A gateway that has heard the store from 0 to `SETTLED_MS`, sent a beat then, and has `x` drained. */
function settled(): FleetState {
  const drains = new Map([['x', DRAIN]]);
  let state = beginFleet({ id: SELF, name: 'gw-a', members: new Map(), removed: [], drains });
  for (const atMs of [0, SETTLED_MS]) state = hear(state, atMs, {});
  return composeBeat({ ...state, pinnedRevision: state.revision }, new Map(), SETTLED_MS).state;
}

const take = (state: FleetState, event: FleetEvent, nowMs: number) => reconcile(state, event, nowMs).state;

/** A reading; ledgers and beats tell for themselves who is there. */
function hear(
  state: FleetState,
  askedAtMs: number,
  { ledgers = [], beats = [] }: { readonly ledgers?: readonly Ledger[]; readonly beats?: readonly Beat[] },
): FleetState {
  const own = [state.id, state.pinnedRevision] as const;
  const revisions = new Map([own, ...ledgers.map(({ id, revision }) => [id, revision] as const)]);
  return take(state, { kind: 'heard', askedAtMs, revisions, ledgers, beats, freshId: FRESH }, askedAtMs);
}

function ledgerOf(id: string, name: string, members: Partial<Ledger> = {}): Ledger {
  return {
    id,
    name,
    revision: 1,
    members: new Map(),
    removed: [],
    drains: new Map([['x', DRAIN]]),
    ...members,
  };
}

function beatOf(id: string, members: Partial<Beat> = {}): Beat {
  const heard = new Map([[SELF, 1]]);
  return {
    id,
    number: 1,
    revision: 1,
    heard,
    drained: new Map([['x', VERSION]]),
    inflight: new Map(),
    ...members,
  };
}

const NOW = SETTLED_MS + 100;
const safeWith = (state: FleetState, nowMs = NOW) => standingOf(state, 'x', 0, nowMs);

describe('a drained replica', () => {
  test('is safe to stop when the other gateway has the drain in force and nothing in flight', () => {
    const state = hear(settled(), NOW, { ledgers: [ledgerOf(OTHER, 'gw-b')], beats: [beatOf(OTHER)] });
    expect(safeWith(state)).toEqual({ safeToStop: true, inflight: 0, unconfirmed: [] });
  });

  test('is so for as long as the other gateway is believed', () => {
    const state = hear(settled(), NOW, { ledgers: [ledgerOf(OTHER, 'gw-b')], beats: [beatOf(OTHER)] });
    const sentAtMs = SETTLED_MS;
    expect(safeWith(state, sentAtMs + BELIEF_MS - 1).safeToStop).toBe(true);
    expect(safeWith(state, sentAtMs + BELIEF_MS)).toMatchObject({ safeToStop: null, unconfirmed: ['gw-b'] });
  });

  test('is not while the other gateway has a request in flight', () => {
    const beats = [beatOf(OTHER, { inflight: new Map([['x', 2]]) })];
    const state = hear(settled(), NOW, { ledgers: [ledgerOf(OTHER, 'gw-b')], beats });
    expect(safeWith(state)).toEqual({ safeToStop: false, inflight: 2, unconfirmed: [] });
    expect(standingOf(state, 'x', 1, NOW).inflight).toBe(3);
  });

  test.each<[string, Partial<Beat>]>([
    ['does not repeat a beat of this one', { heard: new Map() }],
    ['repeats a beat that was never sent', { heard: new Map([[SELF, 99]]) }],
    ['has another drain in force', { drained: new Map([['x', stampAt(9)]]) }],
    ['has a ledger that was not read yet', { revision: 2 }],
  ])('is not known to be while the other gateway %s', (_, members) => {
    const state = hear(settled(), NOW, {
      ledgers: [ledgerOf(OTHER, 'gw-b')],
      beats: [beatOf(OTHER, members)],
    });
    expect(safeWith(state)).toMatchObject({ safeToStop: null, unconfirmed: ['gw-b'] });
  });

  test('is not known to be while a gateway that only the other one knows was not heard', () => {
    const ledgers = [ledgerOf(OTHER, 'gw-b', { members: new Map([[THIRD, 'gw-c']]) })];
    const state = hear(settled(), NOW, { ledgers, beats: [beatOf(OTHER)] });
    expect(safeWith(state)).toMatchObject({ safeToStop: null, unconfirmed: ['gw-c'] });
  });

  test('is not known to be while somebody is in the store whose ledger cannot be read', () => {
    const event = { ledgers: [], beats: [], freshId: FRESH, askedAtMs: NOW } as const;
    const revisions = new Map([[OTHER, 1]]);
    const state = take(settled(), { kind: 'heard', revisions, ...event }, NOW);
    expect(safeWith(state)).toMatchObject({ safeToStop: null, unconfirmed: [OTHER] });
  });

  test('is judged by the latest beat, whatever copy of the store is read', () => {
    const ledgers = [ledgerOf(OTHER, 'gw-b')];
    const latest = beatOf(OTHER, { number: 5, drained: new Map() });
    const state = hear(hear(settled(), NOW, { ledgers, beats: [latest] }), NOW, { beats: [beatOf(OTHER)] });
    expect(safeWith(state).safeToStop).toBeNull();
  });
});

describe('a gateway that nobody knows', () => {
  const newcomer = (): FleetState => {
    const state = beginFleet({ id: SELF, name: 'gw-a', members: new Map(), removed: [], drains: new Map() });
    return composeBeat({ ...hear(state, 0, {}), pinnedRevision: 1 }, new Map(), 0).state;
  };
  const own = beatOf(SELF, { drained: new Map(), heard: new Map() });
  const quiet = { drains: new Map() };

  test('serves when every gateway that beats has repeated its beat', () => {
    const ledgers = [ledgerOf(OTHER, 'gw-b', quiet), ledgerOf(THIRD, 'gw-c', quiet)];
    const seen = hear(newcomer(), 1_000, {
      ledgers,
      beats: [own, beatOf(OTHER), beatOf(THIRD, { heard: new Map() })],
    });
    expect(isJoined(seen)).toBe(false);
    const later = beatOf(THIRD, { number: 2 });
    expect(isJoined(hear(seen, 2_000, { ledgers, beats: [own, beatOf(OTHER), later] }))).toBe(true);
  });

  test('does not wait for one that vanished', () => {
    const ledgers = [ledgerOf(OTHER, 'gw-b', quiet), ledgerOf(THIRD, 'gw-c', quiet)];
    expect(isJoined(hear(newcomer(), 1_000, { ledgers, beats: [own, beatOf(OTHER)] }))).toBe(true);
  });

  test('waits where there is nobody, for those who may be on their way back', () => {
    const alone = hear(newcomer(), 4_000, { beats: [own] });
    expect(isJoined(alone)).toBe(false);
    expect(isJoined(hear(alone, PROMISE_MS, { beats: [own] }))).toBe(true);
  });
});

describe('the gateways', () => {
  const ledgers = [ledgerOf(OTHER, 'gw-b'), ledgerOf(THIRD, 'gw-b')];

  test('are listed with who vanished among them', () => {
    const state = hear(settled(), NOW, {
      ledgers,
      beats: [beatOf(OTHER, { inflight: new Map([['y', 4]]) })],
    });
    expect(listGateways(state, 7, NOW)).toEqual([
      { name: 'gw-a', id: SELF, isSelf: true, isAlive: true, inflight: 7 },
      { name: 'gw-b', id: OTHER, isSelf: false, isAlive: true, inflight: 4 },
      { name: 'gw-b', id: THIRD, isSelf: false, isAlive: false, inflight: null },
    ]);
  });

  test('can be forgotten by name, those of them that vanished', () => {
    const state = hear(settled(), NOW, { ledgers, beats: [beatOf(OTHER)] });
    expect(findVanished(state, 'gw-b', NOW)).toEqual([THIRD]);
    const forgotten = take(state, { kind: 'removed', ids: [THIRD] }, NOW);
    expect([...forgotten.members.keys()]).toEqual([OTHER]);
    expect(findVanished(forgotten, 'gw-b', NOW)).toBe('gateway_alive');
  });

  test('cannot be forgotten while they beat, and not by one that hears nobody', () => {
    const [ledger = ledgerOf(OTHER, 'gw-b')] = ledgers;
    const silent = hear(settled(), NOW, { ledgers: [ledger], beats: [beatOf(OTHER, { heard: new Map() })] });
    expect(findVanished(silent, 'gw-b', NOW)).toBe('gateway_alive');
    expect(findVanished(silent, 'gw-b', NOW + BELIEF_MS + 1)).toBe('fleet_unreachable');
    expect(findVanished(silent, 'gw-a', NOW)).toBe('gateway_alive');
    expect(findVanished(silent, 'gw-x', NOW)).toBe('gateway_not_found');
  });

  test('that are gone for good do not come back by a ledger that still knows them', () => {
    const gone = take(settled(), { kind: 'removed', ids: [THIRD] }, NOW);
    const knowing = ledgerOf(OTHER, 'gw-b', { members: new Map([[THIRD, 'gw-c']]) });
    expect([...hear(gone, NOW, { ledgers: [knowing] }).members.keys()]).toEqual([OTHER]);
  });

  test('take a new id when they were forgotten while they ran', () => {
    const removed = ledgerOf(OTHER, 'gw-b', { removed: [SELF] });
    const { state, effects } = reconcile(
      settled(),
      { kind: 'heard', askedAtMs: NOW, revisions: new Map(), ledgers: [removed], beats: [], freshId: FRESH },
      NOW,
    );
    expect({ id: state.id, pinned: state.pinnedRevision, effects }).toEqual({
      id: FRESH,
      pinned: 0,
      effects: [{ kind: 'remember' }],
    });
  });

  test('remember no more of those who are gone than a fleet can have replaced', () => {
    const ids = Array.from({ length: 1_200 }, (_, index) => stampAt(1_000 + index));
    const state = take(settled(), { kind: 'removed', ids }, NOW);
    expect(state.removed).toEqual(ids.slice(-1_000));
    const again = take(state, { kind: 'removed', ids: ids.slice(0, 10) }, NOW);
    expect([again.removed, again.revision]).toEqual([state.removed, state.revision]);
  });
});

describe('a state that is being put into force', () => {
  test('is not so when an older one is, which it overtook', () => {
    const drained = take(
      settled(),
      { kind: 'changed', replica: 'y', drain: { ...DRAIN, version: stampAt(20) } },
      NOW,
    );
    const again = take(
      drained,
      { kind: 'changed', replica: 'y', drain: { ...DRAIN, version: stampAt(21) } },
      NOW,
    );
    const { state: ended, effects } = reconcile(
      again,
      { kind: 'enforced', replica: 'y', version: stampAt(20) },
      NOW,
    );
    expect(effects).toEqual([]);
    expect(composeBeat(ended, new Map(), NOW).beat.drained.has('y')).toBe(false);
    const both = take(ended, { kind: 'enforced', replica: 'y', version: stampAt(21) }, NOW);
    expect(composeBeat(both, new Map(), NOW).beat.drained.get('y')).toBe(stampAt(21));
  });

  test('is an undrain that somebody repeats as soon as the first one is', () => {
    const known = hear(settled(), NOW, { ledgers: [ledgerOf(OTHER, 'gw-b')], beats: [beatOf(OTHER)] });
    const undrain = (state: FleetState, at: number, nowMs: number) => {
      const drain = { ...DRAIN, drained: false, version: stampAt(at) };
      return take(state, { kind: 'changed', replica: 'x', drain }, nowMs);
    };
    const repeated = undrain(undrain(known, 20, NOW), 21, NOW + PROMISE_MS - 1);
    expect(repeated.underway.has('x')).toBe(false);
    const { effects } = reconcile(repeated, { kind: 'passed' }, NOW + PROMISE_MS);
    expect(effects).toMatchObject([{ kind: 'enforce', drain: { version: stampAt(21) } }]);
  });

  test('is tried again when it could not be', () => {
    const event = { kind: 'changed', replica: 'y', drain: { ...DRAIN, version: stampAt(20) } } as const;
    const { state, effects } = reconcile(settled(), event, NOW);
    expect(effects).toMatchObject([{ kind: 'enforce', replica: 'y' }]);
    expect(reconcile(state, { kind: 'passed' }, NOW).effects).toEqual([]);
    const failed = reconcile(state, { kind: 'failed', replica: 'y', version: stampAt(20) }, NOW);
    expect(failed.effects).toMatchObject([{ kind: 'enforce', replica: 'y' }]);
  });
});
