import type { Program } from '../program/program.ts';
import type { Violation } from '../world/checks/chronicle.ts';
import type { Plan } from '../world/plan.ts';
import { runPlan } from './run-block.ts';

/** A plan with a part of its actions, by number. */
export function withActions(plan: Plan, keep: readonly number[] | null): Plan {
  return keep === null ? plan : { ...plan, actions: plan.actions.filter((_, index) => keep.includes(index)) };
}

/** A smaller world in which something still happens that must not. */
export interface Shrunk {
  readonly keep: readonly number[];
  readonly violation: Violation;
  readonly runs: number;
}

/** Leaves out actions of a plan, first many at a time, as long as a violation remains. */
export async function shrink(plan: Plan, violation: Violation, program: Program): Promise<Shrunk> {
  let keep = plan.actions.map((_, index) => index);
  let last = violation;
  let runs = 0;
  for (let size = Math.ceil(keep.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < keep.length; ) {
      const rest = [...keep.slice(0, at), ...keep.slice(at + size)];
      const result = await runPlan(withActions(plan, rest), program, null);
      runs++;
      if (result.violation === null) at += size;
      else {
        keep = rest;
        last = result.violation;
      }
    }
  }
  return { keep, violation: last, runs };
}
