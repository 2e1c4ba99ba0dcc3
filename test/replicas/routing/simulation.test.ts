import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Candidates } from '../../../src/replicas/routing/candidate-set.ts';
import { CandidateSet } from '../../../src/replicas/routing/candidate-set.ts';
import { leastInflight } from '../../../src/replicas/routing/least-inflight.ts';
import { ownerOfPrefix } from '../../../src/replicas/routing/prefix-affinity.ts';
import { PrefixPopularity } from '../../../src/replicas/routing/prefix-popularity.ts';
import { roundRobin } from '../../../src/replicas/routing/round-robin.ts';
import { type Outcome, type Route, simulate, WORKLOADS } from './traffic.ts';

const REPLICAS = 8;
const REQUESTS = 2000;

/** Chooses with the cursor behind whoever was taken last, as the gateway does. */
function routeBy(
  choose: (hashes: readonly string[], turn: number, candidates: Candidates) => number | null,
): Route {
  let turn = 0;
  return (hashes, loads) => {
    const place = choose(hashes, turn, {
      isOpen: () => true,
      inflightAt: (at) => loads[at] ?? 0,
      seedAt: (at) => Math.imul(at + 1, 0x9e3779b1),
    });
    if (place === null) throw new Error('all are open');
    turn = place + 1;
    return place;
  };
}

const circle = new CandidateSet(REPLICAS, () => true);

const ROUTES = {
  round_robin: () => routeBy((_hashes, turn, candidates) => roundRobin(circle, turn, candidates)),
  least_inflight: () => routeBy((_hashes, turn, candidates) => leastInflight(circle, turn, candidates)),
  prefix_affinity() {
    const heat = new PrefixPopularity();
    return routeBy((hashes, turn, candidates) => {
      const key = heat.keyOf(hashes, REPLICAS);
      return key === null
        ? leastInflight(circle, turn, candidates)
        : ownerOfPrefix(key, circle, turn, candidates);
    });
  },
};

/** The most requests that one replica served, to the mean. */
const spreadOf = ({ served }: Outcome) => Math.max(...served) / (REQUESTS / REPLICAS);

const percent = (share: number) => `${Math.round(100 * share)} %`;

describe.each(Object.entries(WORKLOADS))('on 8 replicas, traffic of the kind "%s"', (kind, make) => {
  let byTurns: Outcome;
  let byLoad: Outcome;
  let byPrefix: Outcome;

  beforeAll(() => {
    const requests = make(REQUESTS);
    byTurns = simulate(requests, REPLICAS, ROUTES.round_robin());
    byLoad = simulate(requests, REPLICAS, ROUTES.least_inflight());
    byPrefix = simulate(requests, REPLICAS, ROUTES.prefix_affinity());
  });

  test('is spread evenly by turns, and by least in flight so that loads are even', () => {
    expect(spreadOf(byTurns)).toBe(1);
    expect(spreadOf(byLoad)).toBeLessThan(1.05);
    expect(byLoad.peakToMean).toBeLessThan(byTurns.peakToMean);
  });

  test('is spread by prefixes so that nobody serves a quarter more than the mean', () => {
    expect(spreadOf(byPrefix)).toBeLessThan(1.25);
  });

  test('finds more of its prompts cached by prefixes than by turns', () => {
    expect(byPrefix.cachedShare - byTurns.cachedShare).toBeGreaterThan(0.15);
    expect(Math.abs(byLoad.cachedShare - byTurns.cachedShare)).toBeLessThan(0.03);
  });

  test('is in docs/routing.md with these figures', async () => {
    const page = await readFile(join(import.meta.dirname, '../../../docs/routing.md'), 'utf8');
    const cached = [byTurns, byLoad, byPrefix].map(({ cachedShare }) => percent(cachedShare));
    expect(page).toContain(`| ${[kind, ...cached, spreadOf(byPrefix).toFixed(2)].join(' | ')} |`);
  });
});
