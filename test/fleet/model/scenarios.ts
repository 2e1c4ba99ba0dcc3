import type { ModelEvent } from './model-world.ts';

/** A history that random runs rarely find, titled by the rule that it would violate a property without. */
export interface Scenario {
  readonly title: string;
  readonly gatewayCount: number;
  readonly events: readonly ModelEvent[];
}

const wait = (ms: number): ModelEvent => ({ kind: 'wait', ms });
const drain = (at: number): ModelEvent => ({ kind: 'drain', at, on: 0 });
const undrain = (at: number): ModelEvent => ({ kind: 'undrain', at, on: 0 });
const to = (
  kind: 'cut' | 'slow' | 'heal' | 'kill' | 'killAndLoseDisk' | 'start' | 'stop',
  at: number,
): ModelEvent => ({
  kind,
  at,
});
const wipe: ModelEvent = { kind: 'wipe' };
const restart: ModelEvent = { kind: 'restartStore', ms: 100 };

export const SCENARIOS: readonly Scenario[] = [
  {
    title: 'an undrain while the store cannot be reached waits until no gateway relies on the drain',
    gatewayCount: 2,
    events: [drain(0), wait(4_000), to('cut', 1), undrain(1), wait(8_000)],
  },
  {
    title: 'a heartbeat that was delayed for long is not valid',
    gatewayCount: 2,
    events: [drain(0), wait(4_000), to('slow', 1), wait(1_500), to('cut', 1), undrain(1), wait(16_000)],
  },
  {
    title: 'a confirmation of an earlier drain does not confirm a later one',
    gatewayCount: 3,
    events: [drain(0), wait(4_000), undrain(2), wait(1_000), drain(0), wait(2_000)],
  },
  {
    title: 'nothing in flight counts only after the drain is applied',
    gatewayCount: 2,
    events: [drain(0), wait(1_000), wait(100), { kind: 'begin', at: 1, on: 0 }, wait(3_000)],
  },
  {
    title: 'a new gateway that finds an empty store waits for those that may still rely on its predecessor',
    gatewayCount: 3,
    events: [drain(0), wait(4_000), restart, to('killAndLoseDisk', 1), to('start', 1), wait(6_000)],
  },
  {
    title: 'a gateway that returns to an empty store waits for those that are new to it',
    gatewayCount: 2,
    events: [
      ...[to('stop', 1), wait(3_000), to('cut', 0), to('start', 1), wait(10_000)],
      ...[drain(0), wait(1_000), wipe, to('heal', 0), wait(4_000)],
    ],
  },
  {
    title: 'a gateway that lost its disk keeps what its predecessor may have confirmed',
    gatewayCount: 3,
    events: [
      ...[drain(0), wait(2_750), to('killAndLoseDisk', 2), { kind: 'failOver', backBy: 10 } as const],
      ...[to('cut', 1), to('start', 2), undrain(0), wait(6_000)],
    ],
  },
  {
    title: 'a gateway that was killed keeps what it confirmed when it is back',
    gatewayCount: 2,
    events: [
      ...[drain(0), wait(4_000), to('cut', 1), to('kill', 1), to('start', 1), wait(1_000)],
      ...[undrain(1), wait(8_000)],
    ],
  },
  {
    title: 'a drain is on disk before it is confirmed',
    gatewayCount: 2,
    events: [drain(0), wait(2_500), to('cut', 1), to('kill', 1), to('start', 1), wait(6_000)],
  },
];
