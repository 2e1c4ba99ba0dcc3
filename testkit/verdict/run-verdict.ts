import { GroupComparison } from '#verdict';

import type { Block } from '#verdict/blocks';
import { type Scenario, simulateSeconds } from './workload.ts';

type Judgement = ReturnType<GroupComparison['judge']>;

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

/** The probability with which a replica that is 20 % slower may be called good. */
const MISSED = 0.05;

/** Compares one simulated replica with its peers until there is a verdict. */
export function runVerdict(
  scenario: Scenario,
  random: () => number,
  { falseAlarm, blockS, maxSeconds, ignoresGood }: SimulationSettings,
): SimulatedEnd {
  const comparison = new GroupComparison();
  let block: Block = { own: [], peers: [] };
  let seconds = 0;
  for (const { own, peers } of simulateSeconds(scenario, random)) {
    seconds++;
    block = { own: [...block.own, ...own], peers: [...block.peers, ...peers] };
    if (seconds % blockS !== 0) continue;
    comparison.addBlock(block, { comparesTimes: true });
    block = { own: [], peers: [] };
    const { kind, wrong } = comparison.judge({ falseAlarm, missed: MISSED, sharesPrompts: true });
    const isOver = kind === 'bad' || (kind === 'good' && !ignoresGood) || seconds >= maxSeconds;
    if (isOver) return { kind, wrong, seconds, requests: comparison.requests };
  }
  throw new Error('a simulation has no end of its own');
}
