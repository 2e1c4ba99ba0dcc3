import type { Happening } from './model-world.ts';

/** A history that random ones hardly ever find, and the rule without which it ends in a lie. */
export interface Story {
  readonly title: string;
  readonly gatewayCount: number;
  readonly happenings: readonly Happening[];
}

const wait = (ms: number): Happening => ({ kind: 'wait', ms });
const drain = (at: number): Happening => ({ kind: 'drain', at, on: 0 });
const undrain = (at: number): Happening => ({ kind: 'undrain', at, on: 0 });
const to = (
  kind: 'cut' | 'slow' | 'heal' | 'kill' | 'killAndLoseDisk' | 'start' | 'stop',
  at: number,
): Happening => ({
  kind,
  at,
});
const wipe: Happening = { kind: 'wipe' };
const restart: Happening = { kind: 'restartStore', ms: 100 };

export const STORIES: readonly Story[] = [
  {
    title: 'an undrain where the store cannot be reached waits until nobody believes the drain',
    gatewayCount: 2,
    happenings: [drain(0), wait(4_000), to('cut', 1), undrain(1), wait(8_000)],
  },
  {
    title: 'a beat that lay on the way for long is not believed',
    gatewayCount: 2,
    happenings: [drain(0), wait(4_000), to('slow', 1), wait(1_500), to('cut', 1), undrain(1), wait(16_000)],
  },
  {
    title: 'a confirmation of an earlier drain says nothing of a later one',
    gatewayCount: 3,
    happenings: [drain(0), wait(4_000), undrain(2), wait(1_000), drain(0), wait(2_000)],
  },
  {
    title: 'nothing in flight counts only after the drain is in force',
    gatewayCount: 2,
    happenings: [drain(0), wait(1_000), wait(100), { kind: 'begin', at: 1, on: 0 }, wait(3_000)],
  },
  {
    title: 'a new gateway that finds a wiped board waits for those who may still believe its predecessor',
    gatewayCount: 3,
    happenings: [drain(0), wait(4_000), restart, to('killAndLoseDisk', 1), to('start', 1), wait(6_000)],
  },
  {
    title: 'who comes back to a wiped board waits for those who are new to it',
    gatewayCount: 2,
    happenings: [
      ...[to('stop', 1), wait(3_000), to('cut', 0), to('start', 1), wait(10_000)],
      ...[drain(0), wait(1_000), wipe, to('heal', 0), wait(4_000)],
    ],
  },
  {
    title: 'a gateway that lost its memory keeps what its predecessor may have promised',
    gatewayCount: 3,
    happenings: [
      ...[drain(0), wait(2_750), to('killAndLoseDisk', 2), { kind: 'failOver', backBy: 10 } as const],
      ...[to('cut', 1), to('start', 2), undrain(0), wait(6_000)],
    ],
  },
  {
    title: 'a gateway that was killed keeps what it promised when it is back',
    gatewayCount: 2,
    happenings: [
      ...[drain(0), wait(4_000), to('cut', 1), to('kill', 1), to('start', 1), wait(1_000)],
      ...[undrain(1), wait(8_000)],
    ],
  },
  {
    title: 'a drain is on disk before anybody counts on it',
    gatewayCount: 2,
    happenings: [drain(0), wait(2_500), to('cut', 1), to('kill', 1), to('start', 1), wait(6_000)],
  },
];
