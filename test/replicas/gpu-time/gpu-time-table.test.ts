import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createSharedClock, openTables, sizeOfTables } from '#shared-memory';
import { runs } from '#testkit/runs.ts';
import { GpuTimeTable, toGpuTimeShapes } from '../../../src/replicas/gpu-time/gpu-time-table.ts';
import type { LeaseBegin } from '../../../src/replicas/gpu-time/split-gpu-time.ts';
import { GpuTimeModel, type ModelLease } from './gpu-time-model.ts';

const WORKERS = 3;
const MAIN = WORKERS;
const SLOTS = 2;
const SLOT = 1;
const GPUS = 8;

const SHAPES = toGpuTimeShapes(WORKERS, SLOTS);

/** Views of the same memory, one for each worker and then one for the main thread. */
function openViews(nowMs: (view: number) => number): readonly GpuTimeTable[] {
  const buffer = new SharedArrayBuffer(sizeOfTables(SHAPES));
  return Array.from(
    { length: WORKERS + 1 },
    (_, view) =>
      new GpuTimeTable(openTables(buffer, SHAPES), { workerCount: WORKERS, slotCount: SLOTS }, () =>
        nowMs(view),
      ),
  );
}

type Kind = 'begin' | 'end' | 'end_unrecorded' | 'read' | 'price' | 'clear_worker' | 'die';

/** What a worker does. Some of what `meanwhile` says happens while it has read the state and not yet changed it. */
interface Operation {
  readonly kind: Kind;
  readonly worker: number;
  readonly pauseMs: number;
  readonly hourPrice: number;
  readonly meanwhile: readonly Operation[];
}

const { operation } = fc.letrec<{ operation: Operation }>((tie) => ({
  operation: fc.record({
    kind: fc.constantFrom<Kind>(
      ...(['begin', 'begin', 'end', 'end_unrecorded', 'read', 'price', 'clear_worker', 'die'] as const),
    ),
    worker: fc.nat(WORKERS - 1),
    pauseMs: fc.double({ min: 0, max: 1000, noNaN: true }),
    hourPrice: fc.constantFrom(0, 1.5, 40_000),
    meanwhile: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.constant([]),
      fc.array(tie('operation'), { maxLength: 3 }),
    ),
  }),
}));

class Died extends Error {}

/** Runs operations on the views and on the model, in the order in which they take effect. */
function run(operations: readonly Operation[]) {
  let nowMs = 1000;
  const model = new GpuTimeModel(nowMs);
  /** What the clock has shown to each view: a change counts from then. */
  const lastReadMs: number[] = [];
  /** Called in the middle of the next change of a view. */
  const interruptions = new Map<number, () => void>();
  /** The views in the middle of a change. */
  const busy = new Set<number>();
  const views = openViews((view) => {
    const interrupt = interruptions.get(view);
    interruptions.delete(view);
    const readMs = nowMs;
    interrupt?.();
    lastReadMs[view] = readMs;
    return readMs;
  });
  const viewOf = (view: number) => views[view] as GpuTimeTable;
  viewOf(MAIN).configure(SLOT, { gpuCount: GPUS, gpuHourPrice: model.hourPrice });
  const advanceModel = (view: number) => model.advance(lastReadMs[view] ?? 0, GPUS);
  const held: { worker: number; began: LeaseBegin; lease: ModelLease }[] = [];

  function apply({ kind, worker, pauseMs, hourPrice, meanwhile }: Operation): void {
    nowMs += pauseMs;
    const view = kind === 'read' || kind === 'price' || kind === 'clear_worker' ? MAIN : worker;
    // A worker that is cleared up after does nothing, and nothing was left half done in this model.
    const involved = kind === 'clear_worker' ? [view, worker] : [view];
    if (involved.some((one) => busy.has(one))) return;
    for (const one of involved) busy.add(one);
    interruptions.set(view, () => {
      for (const inner of meanwhile) apply(inner);
      if (kind === 'die') throw new Died();
    });
    perform(kind, worker, hourPrice);
    interruptions.delete(view);
    for (const one of involved) busy.delete(one);
  }

  function perform(kind: Kind, worker: number, hourPrice: number): void {
    const at = held.findIndex((one) => one.worker === worker);
    const mine = held[at];
    if (kind === 'begin') {
      const began = viewOf(worker).begin(worker, SLOT);
      advanceModel(worker);
      held.push({ worker, began, lease: model.begin(worker) });
    } else if ((kind === 'end' || kind === 'end_unrecorded') && mine !== undefined) {
      held.splice(at, 1);
      const isRecorded = kind === 'end';
      const { began, lease } = mine;
      const part = viewOf(worker).end(worker, SLOT, { began, isRecorded });
      advanceModel(worker);
      model.end(lease, isRecorded);
      expect(part.ms).toBeCloseTo(lease.gotMs, 6);
      expect(part.cost).toBeCloseTo(lease.gotCost, 6);
    } else if (kind === 'read') {
      const { ms, cost } = viewOf(MAIN).timeOf(SLOT);
      advanceModel(MAIN);
      for (const sum of ['busy', 'idle', 'unrecorded'] as const) {
        expect(ms[sum]).toBeCloseTo(model.ms[sum], 6);
        expect(cost?.[sum]).toBeCloseTo(model.cost[sum], 6);
      }
    } else if (kind === 'price') {
      viewOf(MAIN).configure(SLOT, { gpuCount: GPUS, gpuHourPrice: hourPrice });
      advanceModel(MAIN);
      model.hourPrice = hourPrice;
    } else if (kind === 'die') {
      expect(() => viewOf(worker).begin(worker, SLOT)).toThrow(Died);
    } else if (kind === 'clear_worker') {
      for (let index = held.length - 1; index >= 0; index--)
        if (held[index]?.worker === worker) held.splice(index, 1);
      viewOf(MAIN).clearWorker(worker);
      advanceModel(MAIN);
      model.clearWorker(worker);
    }
  }

  for (const one of operations) apply(one);
  perform('read', 0, 0);
}

test('each lease gets its equal part of every moment at its price, whatever the threads do to each other', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60 }), (operations) => run(operations)),
    { numRuns: runs(300) },
  );
});

/**
 * Holds several leases at a time, and begins and ends them without a pause until it is told to stop. Says when it has
 * ended some.
 */
const THREAD = `
  const { parentPort, workerData } = require('node:worker_threads');
  const { buffer, stop, worker, workerCount, slotCount, isRecorded, modules } = workerData;
  Promise.all(modules.map((url) => import(url))).then(([{ GpuTimeTable, toGpuTimeShapes }, { openTables }, { createSharedClock }]) => {
    const tables = openTables(buffer, toGpuTimeShapes(workerCount, slotCount));
    const table = new GpuTimeTable(tables, { workerCount, slotCount }, createSharedClock());
    const held = [];
    let gotMs = 0;
    let gotCost = 0;
    const end = () => {
      const { ms, cost } = table.end(worker, 1, { began: held.shift(), isRecorded });
      gotMs += ms;
      gotCost += cost;
    };
    for (let round = 0; Atomics.load(stop, 0) === 0; round++) {
      held.push(table.begin(worker, 1));
      if (held.length > round % 7) end();
      if (round === 100) parentPort.postMessage('runs');
    }
    while (held.length > 0) end();
    parentPort.postMessage([gotMs, gotCost]);
  });`;

const MODULES = [
  'replicas/gpu-time/gpu-time-table',
  'shared-memory/shared-table',
  'shared-memory/shared-clock',
].map((name) => new URL(`../../../src/${name}.ts`, import.meta.url).href);

test('threads at full speed lose no GPU time, also when one of them is killed again and again', async () => {
  const buffer = new SharedArrayBuffer(sizeOfTables(SHAPES));
  const stop = new Int32Array(new SharedArrayBuffer(4));
  const start = async (worker: number, isRecorded: boolean) => {
    const workerData = { buffer, stop, worker, isRecorded, modules: MODULES };
    const thread = new Worker(THREAD, {
      eval: true,
      workerData: { ...workerData, workerCount: WORKERS, slotCount: SLOTS },
    });
    await once(thread, 'message');
    return thread;
  };
  const table = new GpuTimeTable(
    openTables(buffer, SHAPES),
    { workerCount: WORKERS, slotCount: SLOTS },
    createSharedClock(),
  );
  const setPrice = (gpuHourPrice: number) => table.configure(SLOT, { gpuCount: GPUS, gpuHourPrice });
  setPrice(3_600);
  const threads = [await start(0, true), await start(1, true)];
  const sums = threads.map(async (thread) => (await once(thread, 'message'))[0] as readonly number[]);
  let lastMs = 0;
  for (let kill = 0; kill < runs(10); kill++) {
    const victim = await start(2, false);
    await victim.terminate();
    table.clearWorker(2);
    setPrice(3_600 * (kill + 2));
    const { ms } = table.timeOf(SLOT);
    expect(ms.busy).toBeGreaterThan(lastMs);
    lastMs = ms.busy;
  }
  Atomics.store(stop, 0, 1);
  const [gotMs = 0, gotCost = 0] = (await Promise.all(sums)).reduce(
    ([ms = 0, cost = 0], [oneMs = 0, one = 0]) => [ms + oneMs, cost + one],
  );
  const { ms, cost } = table.timeOf(SLOT);
  expect(ms.unrecorded).toBeGreaterThan(0);
  expect((gotMs + ms.unrecorded) / ms.busy).toBeCloseTo(1, 9);
  expect((gotCost + (cost?.unrecorded ?? 0)) / (cost?.busy ?? 0)).toBeCloseTo(1, 9);
  const later = table.timeOf(SLOT);
  expect(later.ms).toEqual({ ...ms, idle: later.ms.idle });
});
