import { type ChildProcess, fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Plan } from '../world/plan.ts';
import { planWorld } from '../world/plan-world.ts';
import type { Block, BlockResult } from './messages.ts';

/** Which seeds to run, and how. */
export interface SeedRange {
  readonly first: number;
  readonly seeds: number;
  /** Processes; 0: as many as there are cores. */
  readonly jobs: number;
  /** The search takes no new seeds after this time; 0: no limit. */
  readonly minutes: number;
  /** The result is written into the documentation. */
  readonly isWritten: boolean;
}

/** Whether a world is to be run. */
export type WorldFilter = (plan: Plan) => boolean;

/** The sum of all blocks. */
export interface SearchResult extends Omit<BlockResult, 'finding' | 'from' | 'to'> {
  /** The finding with the lowest seed. */
  readonly finding: BlockResult['finding'];
  readonly seconds: number;
}

/** Each world builds its gateways anew, which is garbage soon after: a large nursery saves collections. */
const execArgv = [...process.execArgv, '--max-semi-space-size=64'];

/** Seeds that a process runs before it asks for more. */
const BLOCK_SEEDS = 10;
/** Blocks that a process runs. A new one is slow at first; an old one may have grown. */
const PROCESS_BLOCKS = 200;

/** Runs seeds in several processes until one has a finding, all are done, or the time is over. */
export async function search(
  directory: string,
  range: SeedRange,
  {
    wants = () => true,
    onBlock = () => undefined,
  }: { readonly wants?: WorldFilter; readonly onBlock?: (result: BlockResult) => void } = {},
): Promise<SearchResult> {
  const startedMs = performance.now();
  const jobs = range.jobs === 0 ? availableParallelism() : range.jobs;
  const endMs = range.minutes === 0 ? Number.POSITIVE_INFINITY : startedMs + range.minutes * 60_000;
  const total = { seeds: 0, steps: 0, requests: 0, records: 0, simulatedMs: 0, cpuMs: 0 };
  let finding: BlockResult['finding'] = null;
  let next = range.first;
  const takeBlock = (): Block | null => {
    if (finding !== null || performance.now() >= endMs) return null;
    const seeds: number[] = [];
    for (; seeds.length < BLOCK_SEEDS && next < range.first + range.seeds; next++) {
      if (wants(planWorld(next))) seeds.push(next);
    }
    return seeds.length === 0 ? null : { seeds };
  };
  const onResult = (result: BlockResult) => {
    addFigures(total, result);
    if (result.finding !== null && (finding === null || result.finding.seed < finding.seed))
      finding = result.finding;
    onBlock(result);
  };
  await Promise.all(Array.from({ length: jobs }, () => runBlocks(directory, takeBlock, onResult)));
  return { ...total, finding, seconds: (performance.now() - startedMs) / 1000 };
}

/** Adds what a block has done. */
export function addFigures(total: { -readonly [Name in Figure]: number }, result: BlockResult): void {
  for (const name of FIGURES) total[name] += result[name];
}

const FIGURES = ['seeds', 'steps', 'requests', 'records', 'simulatedMs', 'cpuMs'] as const;
type Figure = (typeof FIGURES)[number];

/** Runs a block after another, in one process after another. */
async function runBlocks(
  directory: string,
  takeBlock: () => Block | null,
  onResult: (result: BlockResult) => void,
): Promise<void> {
  for (let first = takeBlock(); first !== null; first = takeBlock()) {
    let left = PROCESS_BLOCKS;
    let next: Block | null = first;
    const takeNext = () => {
      const block = next ?? (left > 0 ? takeBlock() : null);
      next = null;
      left--;
      return block;
    };
    await runProcess(directory, takeNext, onResult);
  }
}

/** Gives a process a block after another. */
async function runProcess(
  directory: string,
  takeBlock: () => Block | null,
  onResult: (result: BlockResult) => void,
): Promise<void> {
  const child: ChildProcess = fork(join(import.meta.dirname, 'run-block.ts'), [directory], { execArgv });
  const kill = () => child.kill();
  process.once('exit', kill);
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  child.on('message', (message: 'ready' | BlockResult) => {
    if (message !== 'ready') onResult(message);
    const block = takeBlock();
    if (block === null) child.disconnect();
    else child.send(block);
  });
  child.once('error', reject);
  child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`a process ended with ${code}`))));
  await promise;
  process.off('exit', kill);
}
