import type { Program } from '../program/program.ts';
import { Stage } from './act.ts';
import { SPOOLS } from './actors/configure.ts';
import type { GatewayNode } from './actors/gateway-node.ts';
import { checkLedgers, checkNumbers } from './checks/check-numbers.ts';
import { checkRecords } from './checks/check-records.ts';
import type { Violation } from './checks/chronicle.ts';
import type { Plan } from './plan.ts';
import { readRecordFiles } from './read-record-files.ts';
import { type TraceListener, turn, World } from './world.ts';

/** What became of a world. */
export interface WorldResult {
  /** Null: all that must hold has held. */
  readonly violation: Violation | null;
  readonly steps: number;
  /** How long the world lasted: simulated milliseconds. */
  readonly durationMs: number;
  /** The same for the same plan and the same sources. */
  readonly hash: number;
  readonly requests: number;
  readonly records: number;
}

/** The longest that gateways need to start: a fleet waits for those that may be reconnecting. */
const START_MS = 60_000;
/** The longest that requests may take after the faults are over: all time-outs of the configuration, several times. */
const FINISH_MS = 120_000;
/** After it, records are made, connections that nobody uses are closed, and the collector has what it will get. */
const SETTLE_MS = 7_000;
const STOP_MS = 30_000;

/** Runs a world to its end. Throws if the simulation itself fails. */
export async function runWorld(
  plan: Plan,
  program: Program,
  trace: TraceListener | null = null,
): Promise<WorldResult> {
  const world = new World(plan, program, trace);
  // What a microtask throws belongs to the thread whose event came last.
  const onUncaught = (error: unknown) => {
    const owner = world.schedule.current;
    if (owner === null) throw error;
    owner.onUncaught(error);
  };
  process.on('uncaughtException', onUncaught).on('unhandledRejection', onUncaught);
  try {
    await live(world);
  } finally {
    for (const { thread } of world.gateways) thread?.end();
    // What the ends of sockets and servers call comes before another world.
    await turn();
    process.off('uncaughtException', onUncaught).off('unhandledRejection', onUncaught);
    program.release();
  }
  const { chronicle, schedule, hash } = world;
  return {
    violation: chronicle.violation,
    steps: schedule.step,
    durationMs: schedule.nowMs,
    hash,
    requests: chronicle.views.length,
    records: chronicle.collected.size,
  };
}

async function live(world: World): Promise<void> {
  const { gateways, chronicle, plan, clients } = world;
  const stage = new Stage(world);
  const expect = async (isDone: () => boolean, forMs: number, what: () => string) => {
    if (!(await world.runUntil(isDone, forMs))) chronicle.violate(what());
    return chronicle.violation === null;
  };
  const areServing = () => gateways.every(({ state }) => state === 'serving');
  const states = () => gateways.map(({ index, state }) => `gateway ${index} is ${state}`).join(', ');

  stage.start();
  if (!(await expect(areServing, START_MS, () => `no start: ${states()}`))) return;
  world.note('all gateways serve');
  stage.schedule();
  const lastMs = Math.max(0, ...plan.actions.map(({ atMs }) => atMs));
  await world.runUntil(() => false, lastMs + 1);
  await world.runUntil(() => clients.every(({ isOver }) => isOver), FAULTS_LAST_MS);
  stage.heal();
  world.note('all faults are over');
  const areOver = () => clients.every(({ isOver }) => isOver) && stage.isQuiet;
  if (!(await expect(areOver, FINISH_MS, () => 'requests or calls never end'))) return;
  if (!(await expect(areServing, START_MS, () => `no start at the end: ${states()}`))) return;
  await world.runUntil(() => false, SETTLE_MS);

  for (const gateway of gateways) {
    await look(world, stage, gateway);
    if (chronicle.violation !== null) return;
  }
  await stopAll(world, expect);
  if (chronicle.violation !== null) return;
  // What is in the spool is sent at the next start.
  for (let lives = 0; lives < MAX_LIVES && gateways.some(hasSpool); lives++) {
    stage.start();
    if (!(await expect(areServing, START_MS, () => `no further start: ${states()}`))) return;
    await world.runUntil(() => false, SETTLE_MS);
    await stopAll(world, expect);
    if (chronicle.violation !== null) return;
  }

  for (const { machine } of gateways) readRecordFiles(machine.disk, chronicle);
  const losses = gateways.map((gateway) => gateway.losses);
  const problem =
    checkRecords(chronicle, losses) ??
    checkNumbers(chronicle, losses) ??
    (plan.hasLedger ? checkLedgers(chronicle, losses) : null);
  if (problem !== null) chronicle.violate(problem);
}

/** How often the gateways start again to send what is in their spools. */
const MAX_LIVES = 3;

function hasSpool({ machine }: GatewayNode): boolean {
  return SPOOLS.some((path) => {
    const node = machine.disk.find(path);
    return node?.kind === 'directory' && node.names.size > 0;
  });
}

/** Faults that nobody waits for may last so long beyond the last action. */
const FAULTS_LAST_MS = 10_000;

type Expect = (isDone: () => boolean, forMs: number, what: () => string) => Promise<boolean>;

/** Asks a gateway for its state when nothing is under way. */
async function look(world: World, stage: Stage, { index, losses }: GatewayNode): Promise<void> {
  const { chronicle } = world;
  const answers: unknown[] = [];
  for (const call of ['GET /admin/replicas', 'GET /admin/stats']) {
    let isAnswered = false;
    void stage.call(index, call).then((answer) => {
      isAnswered = true;
      answers.push(answer?.json);
    });
    await world.runUntil(() => isAnswered, STOP_MS);
  }
  const [shown, stats] = answers as [
    { readonly replicas: readonly { readonly name: string; readonly inflight: number }[] } | undefined,
    Readonly<Record<string, number>> | undefined,
  ];
  if (chronicle.violation !== null) return;
  if (shown === undefined || stats === undefined) {
    chronicle.violate(`gateway ${index} does not answer its operator at the end`);
    return;
  }
  const busy = shown.replicas.filter(({ inflight }) => inflight !== 0);
  if (busy.length > 0) chronicle.violate(`in flight at the end: ${JSON.stringify(busy)}`);
  if (stats.lost !== losses.lostInProcess)
    chronicle.violate(`gateway ${index} counts ${stats.lost} lost records and logs ${losses.lostInProcess}`);
  losses.onDropped(stats.dropped ?? 0);
}

async function stopAll({ gateways }: World, expect: Expect): Promise<void> {
  for (const gateway of gateways) gateway.stop();
  const states = () => gateways.map(({ index, state }) => `gateway ${index} is ${state}`).join(', ');
  await expect(
    () => gateways.every(({ state }) => state === 'down'),
    STOP_MS,
    () => `no stop: ${states()}`,
  );
}
