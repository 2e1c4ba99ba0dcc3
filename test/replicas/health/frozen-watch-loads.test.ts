import { describe, expect, test } from 'vitest';
import { AUTO_BOUND } from '#replicas/health';
import { toLongRandom } from '#testkit/random.ts';
import { SILENCE_LOADS } from '#testkit/silence/loads.ts';
import { runSilences } from '#testkit/silence/run-silences.ts';

// `npm run lab -- measure/frozen` is the long form, over days.
const HOUR_S = 3_600;

/** A bound that does not spare what is usual. */
const EXACT = { ...AUTO_BOUND, sparesUsual: false };

describe('by default, in two hours, no healthy replica is found frozen', () => {
  test.each(SILENCE_LOADS)('%s', (_title, load) => {
    const [auto] = runSilences({ load, random: toLongRandom(1), seconds: 2 * HOUR_S, bounds: [AUTO_BOUND] });
    expect(auto?.falseAlarms).toBe(0);
  });
});

test('the same time, without sparing what is usual, finds healthy ones', () => {
  const alarms = SILENCE_LOADS.map(([, load]) => {
    const [exact] = runSilences({ load, random: toLongRandom(1), seconds: HOUR_S, bounds: [EXACT] });
    return exact?.falseAlarms ?? 0;
  });
  expect(alarms.filter((count) => count > 0).length).toBeGreaterThanOrEqual(3);
});

test.each(SILENCE_LOADS.filter(([title]) => title.includes('steady') || title.includes('embeddings')))(
  'a replica that freezes under steady traffic is found within 20 s: %s',
  (_title, load) => {
    const [auto] = runSilences({
      load,
      random: toLongRandom(2),
      bounds: [AUTO_BOUND],
      seconds: 2 * HOUR_S,
      freezesAtS: HOUR_S,
    });
    expect(auto?.foundAfterS).toBeGreaterThanOrEqual(14);
    expect(auto?.foundAfterS).toBeLessThanOrEqual(20);
  },
);
