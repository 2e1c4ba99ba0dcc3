import { expect, test } from 'vitest';
import { checkInterleavings } from '#testkit/interleaving/interleavings.ts';
import { CHARGED_TWICE, LAST_INFLIGHT, LAST_OF_BUDGET, limitsIn, ROW } from './programs.ts';

const PROGRAMS = new URL('./programs.ts', import.meta.url).href;

const sumOf = (results: readonly (readonly number[])[]) =>
  results.flat().reduce((sum, each) => sum + each, 0);

test('of two requests that want the last of a budget, exactly one gets it', async () => {
  await checkInterleavings(PROGRAMS, LAST_OF_BUDGET, ({ memory, results }) => {
    expect(sumOf(results)).toBe(1);
    expect(limitsIn(memory).fullInNs('tokens', ROW)).toBe(40e9);
  });
});

test('two requests that are charged at once are charged in full, and the fleet learns of both', async () => {
  await checkInterleavings(PROGRAMS, CHARGED_TWICE, ({ memory }) => {
    const limits = limitsIn(memory);
    expect(limits.fullInNs('tokens', ROW)).toBe(2e9);
    expect(limits.usedOf('tokens', ROW)).toBe(10);
    expect(limits.takeChanged(ROW)).toBe(true);
  });
});

test('a worker that dies at any step lets no request in that is too many', async () => {
  await checkInterleavings(
    PROGRAMS,
    LAST_INFLIGHT,
    ({ memory, results, killed }) => {
      const limits = limitsIn(memory);
      if (killed !== null) limits.clearWorker(killed);
      else expect(sumOf(results)).toBe(1);
      const held = killed === null ? 1 : sumOf(results.slice(1));
      expect(limits.inflightOf(ROW) - held).toBeOneOf(killed === null ? [0] : [0, 1]);
    },
    { kills: 0 },
  );
});
