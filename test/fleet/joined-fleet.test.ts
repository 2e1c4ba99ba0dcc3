import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { type DrainState, newLogicalTimestamp } from '#replicas/drain-state';
import { Drains } from '#replicas/drains';
import { allocateSharedState, SharedState } from '#replicas/shared';
import { FleetLog } from '../../src/fleet/fleet-log.ts';
import type { FleetStore } from '../../src/fleet/fleet-store.ts';
import { type Fleet, openFleet } from '../../src/fleet/joined-fleet.ts';
import type { MembershipFile } from '../../src/fleet/membership-file.ts';

const IDLE = { inflight: 0, background: { running: 0, unknown: 0 } };

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
  readonly file?: MembershipFile;
  readonly write?: (states: ReadonlyMap<string, DrainState>) => Promise<void>;
}

/** A fleet of one gateway. Its store contains only what this gateway writes. */
async function openOne({ store = {}, file = createFile(), write = async () => undefined }: Setting = {}) {
  const lines: { fields: object; message: string }[] = [];
  const say = (fields: object, message: string) => void lines.push({ fields, message });
  const contents: {
    revision: number;
    id: string;
    heartbeat: Parameters<FleetStore['write']>[0]['heartbeat'] | null;
  } = { revision: 0, id: '', heartbeat: null };
  let isUnreachable = false;
  const drains = new Drains({
    shared: new SharedState(allocateSharedState(1)),
    file: { read: async () => new Map(), write, close: async () => undefined },
    barrier: async () => [],
    log: { debug: () => undefined },
  });
  const fleet = await openFleet('gw', {
    version: '0.1.0',
    store: {
      address: 'redis://store:6379',
      read: async () => {
        if (isUnreachable) throw new Error('cut');
        return {
          revisions: new Map(contents.revision === 0 ? [] : [[contents.id, contents.revision]]),
          snapshots: [],
          heartbeats: contents.heartbeat === null ? [] : [contents.heartbeat],
          foreign: [],
        };
      },
      write: async ({ heartbeat, snapshot }) => {
        contents.heartbeat = heartbeat;
        contents.id = heartbeat.id;
        contents.revision = snapshot?.revision ?? contents.revision;
      },
      writeFinal: async () => undefined,
      close: () => undefined,
      ...store,
    },
    clientLimits: {
      takeChanged: () => new Map(),
      onForgotten: () => undefined,
      charge: () => undefined,
      takeInflight: () => new Map(),
      maxInflightOf: () => null,
      setShare: () => undefined,
      divideBy: () => undefined,
    },
    file,
    drains,
    background: () => new Map(),
    backgroundUntilMs: () => 0,
    backgroundLimitMs: () => 0,
    inflight: () => new Map(),
    log: new FleetLog({ info: say, warn: say, error: say }),
  });
  const cut = () => {
    isUnreachable = true;
  };
  return { fleet, drains, lines, cut };
}

function createFile(isKnown = false) {
  const written: Parameters<MembershipFile['write']>[0][] = [];
  const id = isKnown ? newLogicalTimestamp('') : null;
  const first = { id, home: id, isKnown, members: new Map(), removed: [] };
  return {
    written,
    read: async () => first,
    write: async (membership: (typeof written)[number]) => void written.push(membership),
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
  test('fails without the store if no other gateway knows this one', async () => {
    const { fleet } = await openOne({ store: { read: away } });
    await expect(during(30_000, fleet.join())).rejects.toThrow('the fleet could not be joined in 30s: gone');
  });

  test('says once, after a second, what it waits for, where and for how long', async () => {
    const { fleet, lines } = await openOne({ store: { read: away } });
    const joining = fleet.join();
    await during(900, Promise.resolve());
    expect(lines).toEqual([]);
    await expect(during(30_000, joining)).rejects.toThrow();
    const fields = { redis: 'redis://store:6379', reason: 'gone', wait_ms: 30_000 };
    expect(lines).toEqual([{ fields, message: 'the start waits for the shared state' }]);
  });

  test('says nothing of waiting if the store answers', async () => {
    const { fleet, lines, cut } = await openOne();
    await joined(fleet);
    cut();
    await vi.advanceTimersByTimeAsync(5_000);
    expect(lines.map(({ message }) => message)).toEqual(['joined the fleet']);
  });

  test('blames the file of the membership, not the store, if that cannot be written', async () => {
    const id = newLogicalTimestamp('');
    const other = { id, name: 'other', revision: 1, members: new Map(), removed: [], drains: new Map() };
    const revisions = new Map([[id, 1]]);
    const read = async () => ({ revisions, snapshots: [other], heartbeats: [], foreign: [] });
    const full = Object.assign(new Error('no space'), { code: 'ENOSPC' });
    const file = createFile();
    const write = vi.fn(file.write).mockRejectedValue(full).mockResolvedValueOnce(undefined);
    const { fleet } = await openOne({ store: { read }, file: { ...file, write } });
    await expect(during(30_000, fleet.join())).rejects.toThrow('fleet.json cannot be written (ENOSPC)');
  });

  test('serves with the last known drains if other gateways knew it when it stopped', async () => {
    const { fleet, lines } = await openOne({ store: { read: away }, file: createFile(true) });
    const joining = fleet.join();
    await vi.advanceTimersByTimeAsync(6_000);
    expect(fleet.failure).toBe('gone');
    await during(2_000, joining);
    expect(lines).toMatchObject([
      { fields: { wait_ms: 6_250 }, message: 'the start waits for the shared state' },
      { message: expect.stringContaining('last known drains') },
    ]);
  });

  test('is on disk as known before it serves, and as unknown when it stops', async () => {
    const file = createFile();
    const { fleet } = await openOne({ file });
    await joined(fleet);
    expect(file.written.at(-1)).toMatchObject({ isKnown: true, removed: [] });
    await during(2_000, fleet.leave());
    expect(file.written.at(-1)).toMatchObject({ isKnown: false });
  });

  test('stays known if it cannot reach the store when it stops', async () => {
    const file = createFile();
    const { fleet, cut } = await openOne({ file });
    await joined(fleet);
    cut();
    await vi.advanceTimersByTimeAsync(6_000);
    await during(2_000, fleet.leave());
    expect(file.written.at(-1)).toMatchObject({ isKnown: true });
  });
});

describe('a drain in a fleet', () => {
  test('that cannot be stored sets the flag, stays unconfirmed, and is tried again', async () => {
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
    expect(fleet.drainStatusOf('x', IDLE).unconfirmed).toEqual(['gw']);
    isFull = false;
    await vi.advanceTimersByTimeAsync(2_000);
    expect(fleet.drainStatusOf('x', IDLE)).toEqual({ safeToStop: true, ...IDLE, unconfirmed: [] });
    expect(lines.map(({ message }) => message)).toContain(
      'a drain state of the fleet could not be stored; trying again',
    );
  });

  test('has the scope of the fleet after a sync, and is local while the store cannot be reached', async () => {
    const { fleet, cut } = await openOne();
    await joined(fleet);
    const first = fleet.set('x', true, WHY);
    expect(first.propagation().scope).toBe('local');
    await during(500, first.settled);
    expect(first.propagation()).toEqual({ scope: 'fleet', overtaken: false, unconfirmed: [] });
    cut();
    const second = fleet.set('y', true, WHY);
    await during(500, second.settled);
    expect(second.propagation()).toEqual({ scope: 'local', overtaken: false, unconfirmed: [] });
  });

  test('that changes nothing is a new version, and is published again', async () => {
    const { fleet, cut } = await openOne();
    await joined(fleet);
    const first = fleet.set('x', true, { ...WHY, reason: 'new weights' });
    await during(500, first.settled);
    cut();
    const again = fleet.set('x', true, { ...WHY, at: '2026-02-02T00:00:00.000Z' });
    expect(again.after).toEqual({ ...first.after, version: again.after.version });
    expect(again.after.version > first.after.version).toBe(true);
    await during(500, again.settled);
    expect(again.propagation().scope).toBe('local');
  });

  test('reports that a later undrain overtook it', async () => {
    const { fleet } = await openOne();
    await joined(fleet);
    const drained = fleet.set('x', true, WHY);
    const undrained = fleet.set('x', false, WHY);
    await during(500, Promise.all([drained.settled, undrained.settled]));
    expect(drained.propagation()).toEqual({ scope: 'fleet', overtaken: true, unconfirmed: [] });
    expect(undrained.propagation()).toEqual({ scope: 'fleet', overtaken: false, unconfirmed: [] });
  });
});
