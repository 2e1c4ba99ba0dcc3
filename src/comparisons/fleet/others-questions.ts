import { setImmediate } from 'node:timers/promises';
import type { Groups, GroupsProblem, Selectors } from '../groups/find-groups.ts';
import type { PodsProblem } from '../groups/pod-labels.ts';
import { parseSelector } from '../groups/selector.ts';
import { type Moment, RunningComparison } from '../judge/running-comparison.ts';
import type { RequestRing } from '../requests/request-ring.ts';
import type { FleetFacts, FleetQuestion } from './judge-text.ts';

interface OthersCollaborators {
  readonly ring: RequestRing;
  /** Monotonic. */
  readonly nowMs: () => number;
  readonly momentOf: (groups: Groups) => Moment;
  /** `gone`: replicas of the baseline that stay in the comparison. */
  readonly findGroups: (
    selectors: Selectors,
    gone: ReadonlySet<string>,
  ) => Promise<Groups | GroupsProblem | PodsProblem>;
}

/** A question of another gateway, and what the requests of this one say. */
interface Asked {
  readonly selectors: Selectors;
  readonly running: RunningComparison;
  groups: Groups | null;
  heardMs: number;
}

/** As many as one gateway may have been asked. */
const MAX_ASKED = 64;

/** Who asks says so once per second. */
const FORGOTTEN_AFTER_MS = 30_000;

const NONE: ReadonlySet<string> = new Set();

/** The comparisons that other gateways of the fleet have been asked for, by the requests of this one. */
export class OthersQuestions {
  readonly #collaborators: OthersCollaborators;
  readonly #asked = new Map<string, Asked>();
  #isAdvancing = false;

  constructor(collaborators: OthersCollaborators) {
    this.#collaborators = collaborators;
  }

  get isEmpty(): boolean {
    return this.#asked.size === 0;
  }

  /** Another gateway wants to know something. Returns whether it does for the first time. */
  hear({ id, candidate, baseline, sinceAgoMs }: FleetQuestion): boolean {
    const { ring, nowMs } = this.#collaborators;
    const known = this.#asked.get(id);
    if (known !== undefined) {
      known.heardMs = nowMs();
      return false;
    }
    const selectors = toSelectors(candidate, baseline);
    if (selectors === null || this.#asked.size >= MAX_ASKED) return false;
    const running = new RunningComparison(ring, Math.max(nowMs() - sinceAgoMs, ring.completeFromMs));
    this.#asked.set(id, { selectors, running, groups: null, heardMs: nowMs() });
    return true;
  }

  /** Looks at all requests that have ended, and resolves with what is known of each question. */
  async advance(): Promise<readonly FleetFacts[]> {
    if (this.#isAdvancing) return [];
    this.#isAdvancing = true;
    try {
      return await this.#advance();
    } finally {
      this.#isAdvancing = false;
    }
  }

  clear(): void {
    this.#asked.clear();
  }

  async #advance(): Promise<readonly FleetFacts[]> {
    const { nowMs, momentOf, findGroups } = this.#collaborators;
    const facts: FleetFacts[] = [];
    for (const [id, asked] of this.#asked) {
      if (nowMs() - asked.heardMs >= FORGOTTEN_AFTER_MS) {
        this.#asked.delete(id);
        continue;
      }
      const found = await findGroups(asked.selectors, asked.groups?.baseline ?? NONE);
      // A replica that this gateway does not know yet, or not any more.
      if (!('code' in found)) asked.groups = found;
      const { running, groups } = asked;
      if (groups === null) continue;
      while (running.advance(momentOf(groups))) await setImmediate();
      facts.push({ id, comparison: running.comparison.facts });
    }
    return facts;
  }
}

function toSelectors(candidate: string, baseline: string | null): Selectors | null {
  const own = parseSelector(candidate);
  const others = baseline === null ? null : parseSelector(baseline);
  return own === null || (baseline !== null && others === null) ? null : { candidate: own, baseline: others };
}
