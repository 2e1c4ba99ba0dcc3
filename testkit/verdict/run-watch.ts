import { FALSE_ALARMS_PER_DAY, ReplicaWatch, type WatchedDimension } from '#verdict';
import { type Block, isFull } from '#verdict/blocks';
import { type Scenario, simulateSeconds } from './workload.ts';

/** A replica that was found bad. */
export interface Alarm {
  readonly replica: string;
  readonly wrong: readonly WatchedDimension[];
  /** After the start. */
  readonly seconds: number;
  /** Of the replica, up to then. */
  readonly requests: number;
}

export interface WatchSettings {
  /** The replicas that are watched, of r0 (the one that may be bad) to r3. */
  readonly replicas: readonly string[];
  readonly seconds: number;
  /** Whether it ends with the first alarm; otherwise the watch over that replica begins anew. */
  readonly endsWithAlarm: boolean;
  readonly isProbation: boolean;
  readonly falseAlarmsPerDay: number;
}

/** How much slower than its peers a replica may be: the default of `health.peers.tolerance`. */
const TOLERANCE = 1.05;

/** The settings for one replica that is watched until it is found bad. */
export const UNTIL_FOUND: WatchSettings = {
  replicas: ['r0'],
  seconds: 3_600,
  endsWithAlarm: true,
  isProbation: false,
  falseAlarmsPerDay: FALSE_ALARMS_PER_DAY,
};

/** Watches simulated replicas as a gateway does, and returns those that it finds bad. */
export function runWatch(
  scenario: Scenario,
  random: () => number,
  settings: WatchSettings,
): readonly Alarm[] {
  const begin = () => new ReplicaWatch({ isProbation: settings.isProbation });
  const open = (nowMs: number): Block & { readonly sinceMs: number } => ({
    own: [],
    peers: [],
    sinceMs: nowMs,
  });
  const watched = new Map(
    settings.replicas.map((replica) => [replica, { watch: begin(), block: open(0), requests: 0 }]),
  );
  const alarms: Alarm[] = [];
  let seconds = 0;
  for (const { own, peers } of simulateSeconds(scenario, random)) {
    seconds++;
    const nowMs = seconds * 1_000;
    const ended = [...own, ...peers];
    for (const [replica, state] of watched) {
      state.block = {
        own: [...state.block.own, ...ended.filter((each) => each.replica === replica)],
        peers: [...state.block.peers, ...ended.filter((each) => each.replica !== replica)],
        sinceMs: state.block.sinceMs,
      };
      const { own: its, peers: others, sinceMs } = state.block;
      if (!isFull({ spanMs: nowMs - sinceMs, own: its.length, peers: others.length })) continue;
      state.requests += state.block.own.length;
      state.watch.add(state.block, { tolerance: TOLERANCE, comparesTimes: true });
      state.block = open(nowMs);
      const wrong = state.watch.findWrong(settings.falseAlarmsPerDay);
      if (wrong.length === 0) continue;
      alarms.push({ replica, wrong, seconds, requests: state.requests });
      if (settings.endsWithAlarm) return alarms;
      state.watch = begin();
    }
    if (seconds >= settings.seconds) return alarms;
  }
  return alarms;
}
