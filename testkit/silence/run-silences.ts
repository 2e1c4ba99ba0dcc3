import { FrozenWatch, type SilenceBound } from '#replicas/health';
import type { HealthDecision } from '#replicas/health-state';
import type { Silence } from '#replicas/silence';
import { createPools, toReplicaConfig } from '../pool.ts';
import type { SilenceLoad } from './loads.ts';
import { SimulatedEngine } from './simulated-engine.ts';

/** What is simulated. */
export interface SilenceRun {
  readonly load: SilenceLoad;
  readonly random: () => number;
  readonly seconds: number;
  /** The bounds of the watches over the same replicas. */
  readonly bounds: readonly SilenceBound[];
  /** When `r0` freezes, in seconds; the run ends once each watch has found it. Unset: never. */
  readonly freezesAtS?: number;
}

/** What one of the watches has found. */
export interface SilenceFindings {
  /** How often a replica was found frozen that is not. */
  readonly falseAlarms: number;
  /** How long after it froze `r0` was found, in seconds; null: it was not. */
  readonly foundAfterS: number | null;
}

/** Of one model; the first one may freeze. */
export const SIMULATED_REPLICAS = ['r0', 'r1', 'r2', 'r3'] as const;

/** How often workers sample, and the simulated engines do a piece of work. */
const STEPS_PER_SECOND = 2;
const START_MS = 1_000_000;
/** `timeouts.first_byte`. */
const GIVEN_UP_AFTER_MS = 15 * 60_000;

/** Runs simulated replicas under a load in virtual time, watched as the gateway watches them: by its own FrozenWatch. */
export function runSilences(run: SilenceRun): readonly SilenceFindings[] {
  const { load, random, seconds, bounds, freezesAtS = Number.POSITIVE_INFINITY } = run;
  let nowMs = START_MS;
  const engines = SIMULATED_REPLICAS.map(() => new SimulatedEngine(load.engine));
  const watches = bounds.map((bound) => watchSilences(bound, () => nowMs));
  let turn = 0;
  let owed = 0;
  for (let step = 1; step <= seconds * STEPS_PER_SECOND; step++) {
    const second = step / STEPS_PER_SECOND;
    nowMs = START_MS + 1_000 * second;
    // Arrivals at random: the time between two has an exponential distribution.
    owed += load.rateAt(second) / STEPS_PER_SECOND;
    while (owed > 0) {
      engines[turn++ % engines.length]?.send(load.next(random, second), nowMs);
      owed += Math.log(1 - random());
    }
    const [first] = engines;
    if (first !== undefined) first.isFrozen = second >= freezesAtS;
    for (const engine of engines) {
      engine.work(nowMs, 1 / STEPS_PER_SECOND);
      engine.giveUp(nowMs - GIVEN_UP_AFTER_MS);
    }
    if (step % STEPS_PER_SECOND !== 0) continue;
    const silences = engines.map((engine) => engine.observeSilence());
    for (const watch of watches) watch.look(silences, second - freezesAtS);
    if (watches.every(({ foundAfterS }) => foundAfterS() !== null)) break;
  }
  return watches.map(({ falseAlarms, foundAfterS }) => ({
    falseAlarms: falseAlarms(),
    foundAfterS: foundAfterS(),
  }));
}

/** The watch of one gateway with one worker over SIMULATED_REPLICAS, by a clock of the caller. */
export function watchSilences(bound: SilenceBound, nowMs: () => number) {
  const configs = SIMULATED_REPLICAS.map((name) => toReplicaConfig(name));
  const { registry, shared } = createPools(configs, 1, { nowMs });
  let frozenForS = Number.NEGATIVE_INFINITY;
  let falseAlarms = 0;
  let foundAfterS: number | null = null;
  const note = ({ replica, verdict }: HealthDecision) => {
    if (verdict !== 'failing') return;
    if (replica === SIMULATED_REPLICAS[0] && frozenForS >= 0) foundAfterS ??= frozenForS;
    else falseAlarms++;
  };
  const { health: table, silences, ramps } = shared;
  const watch = new FrozenWatch({ registry, table, silences, ramps, decisions: { note } });
  const slots = SIMULATED_REPLICAS.map((name) => registry.find(name)?.slot ?? -1);
  return {
    /** Samples, and judges. `isFrozenForS`: how long `r0` has been frozen; negative: it is not. */
    look(seen: readonly Silence[], isFrozenForS: number) {
      frozenForS = isFrozenForS;
      for (const [index, slot] of slots.entries()) {
        const silence = seen[index];
        if (silence !== undefined) silences.note(0, slot, silence);
      }
      silences.noteSampled(0);
      watch.check(bound);
    },
    falseAlarms: () => falseAlarms,
    foundAfterS: () => foundAfterS,
  };
}
