import { compareBlock, EMPTY_COMPARISON } from '../../src/verdict/comparison.ts';
import { DIMENSIONS, type Judgement, judge } from '../../src/verdict/judge.ts';
import { type Scenario, simulateSeconds } from './workload.ts';

/** How one simulated rollout ended. */
export interface SimulatedEnd {
  readonly kind: Judgement['kind'];
  readonly wrong: Judgement['wrong'];
  /** After the ramp. */
  readonly seconds: number;
  /** Of the replica. */
  readonly requests: number;
}

export interface SimulationSettings {
  readonly falseAlarm: number;
  readonly blockS: number;
  readonly maxSeconds: number;
  /** Whether the comparison goes on although the replica counts as good, so that a false alarm has more time. */
  readonly ignoresGood: boolean;
}

/** Compares one simulated replica with its peers until there is a verdict. */
export function runVerdict(
  scenario: Scenario,
  random: () => number,
  { falseAlarm, blockS, maxSeconds, ignoresGood }: SimulationSettings,
): SimulatedEnd {
  let comparison = EMPTY_COMPARISON;
  let block: Parameters<typeof compareBlock>[1] = { own: [], peers: [] };
  let seconds = 0;
  for (const { own, peers } of simulateSeconds(scenario, random)) {
    seconds++;
    block = { own: [...block.own, ...own], peers: [...block.peers, ...peers] };
    if (seconds % blockS !== 0) continue;
    comparison = compareBlock(comparison, block, { comparesTimes: true });
    block = { own: [], peers: [] };
    const { kind, wrong } = judge(comparison, { falseAlarm, judged: DIMENSIONS });
    const isOver = kind === 'bad' || (kind === 'good' && !ignoresGood) || seconds >= maxSeconds;
    if (isOver) return { kind, wrong, seconds, requests: comparison.own };
  }
  throw new Error('a simulation has no end of its own');
}
