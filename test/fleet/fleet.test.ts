import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { type Fleet, openFleet } from '../../src/fleet/fleet.ts';
import { FleetLog } from '../../src/fleet/fleet-log.ts';
import { createFleetMemory, type FleetMemory } from '../../src/fleet/fleet-memory.ts';
import type { FleetStore } from '../../src/fleet/store.ts';
import type { DrainState } from '../../src/replicas/control/drains.ts';
import { Drains } from '../../src/replicas/control/drains.ts';
import { newLogicalTimestamp } from '../../src/replicas/control/logical-timestamp.ts';
import { allocateSharedState, SharedState } from '../../src/replicas/shared/shared-state.ts';

const WHY = { reason: null, at: '2026-01-01T00:00:00.000Z' };
const away = () => Promise.reject(new Error('gone'));

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

interface Setting {
  readonly store?: Partial<FleetStore>;
  readonly memory?: FleetMemory;
  readonly write?: (states: ReadonlyMap<string, DrainState>) => Promise<void>;
}

/** A fleet of one, with a store that takes everything and holds nothing but what this gateway writes. */
async function openOne({ store = {}, memory = memoryOf(), write = async () => undefined }: Setting = {}) {
  const lines: { fields: object; message: string }[] = [];
  const say = (fields: object, message: string) => void lines.push({ fields, message });
  const sheets: { revision: number; id: string; beat: Parameters<FleetStore['write']>[0]['beat'] | null } = {
    ...{ revision: 0, id: '', beat: null },
  };
  let isCut = false;
  const drains = new Drains({
    shared: new SharedState(allocateSharedState(1)),
    file: { read: async () => new Map(), write },
    barrier: async () => [],
  });
  const fleet = await openFleet('gw', {
    store: {
      read: async () => {
        if (isCut) throw new Error('cut');
        return {
          revisions: new Map(sheets.revision === 0 ? [] : [[sheets.id, sheets.revision]]),
          ledgers: [],
          beats: sheets.beat === null ? [] : [sheets.beat],
          foreign: [],
        };
      },
      write: async ({ beat, ledger }) => {
        sheets.beat = beat;
        sheets.id = beat.id;
        sheets.revision = ledger?.revision ?? sheets.revision;
      },
      writeLast: async () => undefined,
      close: () => undefined,
      ...store,
    },
    ...{ memory, drains, inflight: () => new Map(), log: new FleetLog({ info: say, warn: say, error: say }) },
  });
  const cut = () => {
    isCut = true;
  };
  return { fleet, drains, lines, cut };
}

function memoryOf(isKnown = false) {
  const kept: Parameters<FleetMemory['write']>[0][] = [];
  const first = { id: isKnown ? newLogicalTimestamp('') : null, isKnown, members: new Map(), removed: [] };
  return {
    kept,
    read: async () => first,
    write: async (memory: (typeof kept)[number]) => void kept.push(memory),
  };
}

/** Runs a promise while time passes. */
async function during<T>(ms: number, promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  await vi.advanceTimersByTimeAsync(ms);
  return await promise;
}

async function joined(fleet: Fleet): Promise<void> {
  await during(8_000, fleet.join());
}

describe('the start of a gateway in a fleet', () => {
  test('does not serve without the store, if nobody can know of it', async () => {
    const { fleet } = await openOne({ store: { read: away } });
    await expect(during(30_000, fleet.join())).rejects.toThrow('the fleet could not be joined in 30s: gone');
  });

  test('serves with its last known drains, if others knew it when it stopped', async () => {
    const { fleet, lines } = await openOne({ store: { read: away }, memory: memoryOf(true) });
    const joining = fleet.join();
    await vi.advanceTimersByTimeAsync(6_000);
    expect(lines.map(({ message }) => message)).toEqual(['the shared state cannot be reached']);
    await during(2_000, joining);
    expect(lines.map(({ message }) => message)[1]).toContain('last known drains');
  });

  test('is remembered before it serves, and its id is gone when it stops', async () => {
    const memory = memoryOf();
    const { fleet } = await openOne({ memory });
    await joined(fleet);
    expect(memory.kept.at(-1)).toMatchObject({ isKnown: true, removed: [] });
    await during(2_000, fleet.leave());
    expect(memory.kept.at(-1)).toMatchObject({ isKnown: false });
  });

  test('stays known when it stops and nobody can hear that it does', async () => {
    const memory = memoryOf();
    const { fleet, cut } = await openOne({ memory });
    await joined(fleet);
    cut();
    await vi.advanceTimersByTimeAsync(6_000);
    await during(2_000, fleet.leave());
    expect(memory.kept.at(-1)).toMatchObject({ isKnown: true });
  });
});

describe('a drain in a fleet', () => {
  test('that cannot be stored is in force, is told so, and is tried again', async () => {
    let isFull = true;
    const { fleet, drains, lines } = await openOne({
      write: async () => {
        if (isFull) throw new Error('no space left');
      },
    });
    await joined(fleet);
    const { stored } = fleet.set('x', true, WHY);
    expect(drains.stateOf('x').drained).toBe(true);
    await expect(stored).rejects.toThrow('no space left');
    expect(fleet.standingOf('x', 0).unconfirmed).toEqual(['gw']);
    isFull = false;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(fleet.standingOf('x', 0)).toEqual({ safeToStop: true, inflight: 0, unconfirmed: [] });
    expect(lines.map(({ message }) => message)).toContain(
      'a drain state of the fleet could not be stored; trying again',
    );
  });

  test('is everywhere where there is nobody else, and only here while the store is away', async () => {
    const { fleet, cut } = await openOne();
    await joined(fleet);
    const first = fleet.set('x', true, WHY);
    expect(first.spread().scope).toBe('local');
    await during(500, first.settled);
    expect(first.spread()).toEqual({ scope: 'fleet', overtaken: false, unconfirmed: [] });
    cut();
    const second = fleet.set('y', true, WHY);
    await during(500, second.settled);
    expect(second.spread()).toEqual({ scope: 'local', overtaken: false, unconfirmed: [] });
  });

  test('that repeats what is so is a later version, and is told to the others again', async () => {
    const { fleet, cut } = await openOne();
    await joined(fleet);
    const first = fleet.set('x', true, { ...WHY, reason: 'new weights' });
    await during(500, first.settled);
    cut();
    const again = fleet.set('x', true, { ...WHY, at: '2026-02-02T00:00:00.000Z' });
    expect(again.after).toEqual({ ...first.after, version: again.after.version });
    expect(again.after.version > first.after.version).toBe(true);
    await during(500, again.settled);
    expect(again.spread().scope).toBe('local');
  });

  test('that an undrain overtakes is not in force any more, and its answer says so', async () => {
    const { fleet } = await openOne();
    await joined(fleet);
    const drained = fleet.set('x', true, WHY);
    const undrained = fleet.set('x', false, WHY);
    await during(500, Promise.all([drained.settled, undrained.settled]));
    expect(drained.spread()).toEqual({ scope: 'fleet', overtaken: true, unconfirmed: [] });
    expect(undrained.spread()).toEqual({ scope: 'fleet', overtaken: false, unconfirmed: [] });
  });
});

describe('the memory of a fleet', () => {
  test('is what was written, over a restart', async () => {
    vi.useRealTimers();
    const folder = await mkdtemp(join(tmpdir(), 'spangate-memory-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    const memory = {
      ...{ id: newLogicalTimestamp(''), isKnown: true, removed: [newLogicalTimestamp('')] },
      members: new Map([[newLogicalTimestamp(''), 'gw-b']]),
    };
    const open = () => createFleetMemory(folder, { error: () => expect.unreachable() });
    expect((await open().read()).id).toBeNull();
    await open().write(memory);
    expect(await open().read()).toEqual(memory);
    expect(await readFile(join(folder, 'fleet.json'), 'utf8')).toContain('gw-b');
  });

  const ID = newLogicalTimestamp('');
  const FOREIGN = { version: 1, id: ID, isKnown: true, members: { foo: 'foo', [ID]: 'gw' }, removed: ['x'] };
  test.each([
    ['', null],
    ['{}', null],
    [JSON.stringify({ ...FOREIGN, id: 'x' }), null],
    [JSON.stringify(FOREIGN), { id: ID, isKnown: true, members: new Map([[ID, 'gw']]), removed: [] }],
  ])('is what can be read of a damaged file, which is set aside: %j', async (text, kept) => {
    vi.useRealTimers();
    const folder = await mkdtemp(join(tmpdir(), 'spangate-memory-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    await writeFile(join(folder, 'fleet.json'), text);
    const lines: object[] = [];
    const memory = createFleetMemory(folder, { error: (fields) => void lines.push(fields) });
    expect(await memory.read()).toMatchObject(kept ?? { id: null, isKnown: false });
    const [aside = '', ...others] = await readdir(folder);
    expect([others, await readFile(join(folder, aside), 'utf8')]).toEqual([[], text]);
    expect(lines).toEqual([
      {
        file: join(folder, 'fleet.json'),
        set_aside: expect.stringMatching(/^fleet\.json\.damaged-\d{8}T\d{6}\.\d{3}Z$/),
        lost: kept === null ? 'all of it' : ['foo', 'x'],
      },
    ]);
  });
});
