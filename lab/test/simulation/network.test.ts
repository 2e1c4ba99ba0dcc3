import { expect, test } from 'vitest';
import type { SocketErrorCode } from '../../simulation/engine/end.ts';
import { type Listener, Network } from '../../simulation/engine/network.ts';
import { Schedule } from '../../simulation/engine/schedule.ts';
import { Actor } from '../../simulation/world/actors/actor.ts';

test('a connection that its listener closes before it accepts it fails for the side that connects', () => {
  const schedule = new Schedule(() => undefined);
  const network = new Network(1, schedule, {
    // The answer to the first packet takes longer than the listener's reset.
    profileOf: () => ({ latencyMs: [5, 6], readBytes: 100, capacityBytes: 100 }),
    admits: () => 'open',
  });
  const listener: Listener = {
    owner: new Actor('server'),
    reusesPort: false,
    accept: () => expect.unreachable(),
  };
  network.listen('10.0.0.1:80', listener);
  const outcomes: (SocketErrorCode | null)[] = [];
  network.connect('10.0.0.2', '10.0.0.1:80', new Actor('client'), (error) => outcomes.push(error));

  // The first packet has arrived, and nothing else has happened.
  schedule.runNext(Number.POSITIVE_INFINITY);
  network.stopListening('10.0.0.1:80', listener);
  while (schedule.runNext(Number.POSITIVE_INFINITY));

  expect(outcomes).toEqual(['ECONNRESET']);
  expect(network.open.size).toBe(0);
});
