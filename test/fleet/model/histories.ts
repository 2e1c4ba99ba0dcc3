import fc from 'fast-check';
import { type ModelEvent, ModelWorld } from './model-world.ts';

const at = fc.nat(3);
const on = fc.constantFrom(0, 0, 0, 1);
const kinds = <K extends string>(...all: readonly K[]) => fc.constantFrom(...all);

const anyEvent: fc.Arbitrary<ModelEvent> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: kinds('wait'), ms: fc.integer({ min: 50, max: 1_500 }) }) },
  { weight: 3, arbitrary: fc.record({ kind: kinds('wait'), ms: fc.integer({ min: 1_500, max: 15_000 }) }) },
  { weight: 8, arbitrary: fc.record({ kind: kinds('begin', 'end', 'drain', 'drain', 'undrain'), at, on }) },
  { weight: 4, arbitrary: fc.record({ kind: kinds('cut', 'slow', 'lag', 'heal', 'heal'), at }) },
  {
    weight: 4,
    arbitrary: fc.record({ kind: kinds('start', 'start', 'kill', 'killAndLoseDisk', 'stop', 'forget'), at }),
  },
  { weight: 1, arbitrary: fc.record({ kind: kinds('wipe') }) },
  { weight: 1, arbitrary: fc.record({ kind: kinds('restartStore'), ms: fc.nat(2_000) }) },
  { weight: 1, arbitrary: fc.record({ kind: kinds('failOver'), backBy: fc.nat(30) }) },
);

/** A fleet of up to four gateways, and the events that it goes through. */
export const history = fc.record({
  gatewayCount: fc.integer({ min: 1, max: 4 }),
  seed: fc.integer(),
  events: fc.array(anyEvent, { minLength: 1, maxLength: 60, size: 'max' }),
});

const called = fc
  .tuple(fc.record({ kind: kinds('drain', 'undrain'), at, on }), fc.integer({ min: 1, max: 900 }))
  .map(([call, ms]): readonly ModelEvent[] => [call, { kind: 'wait', ms }]);
const between: fc.Arbitrary<readonly ModelEvent[]> = fc.oneof(
  fc.record({ kind: kinds('cut', 'slow', 'lag', 'lag', 'heal'), at }).map((event) => [event]),
  fc.record({ kind: kinds('wait'), ms: fc.integer({ min: 50, max: 8_000 }) }).map((event) => [event]),
);

/** Gateways that never stop, links that are cut, slow or long, and drains and undrains at any time. */
export const calls = fc.record({
  gatewayCount: fc.integer({ min: 2, max: 4 }),
  seed: fc.integer(),
  events: fc
    .array(fc.oneof({ weight: 3, arbitrary: called }, { weight: 2, arbitrary: between }), {
      minLength: 2,
      maxLength: 30,
      size: 'max',
    })
    .map((parts) => parts.flat()),
});

/** Starts a fleet, runs the history, and returns the world after it. */
export function runHistory(
  {
    gatewayCount,
    seed,
    events,
  }: {
    gatewayCount: number;
    seed: number;
    events: readonly ModelEvent[];
  },
  settings: { readonly doClocksAgree?: boolean } = {},
) {
  const world = new ModelWorld(gatewayCount, seed, settings);
  for (let index = 0; index < gatewayCount; index++) world.handle({ kind: 'start', at: index });
  world.wait(10_000);
  for (const event of events) world.handle(event);
  return world;
}
