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

/** Chooses with the cursor after the last choice, as the gateway does. */
function routeBy(
  choose: (hashes: readonly string[], start: number, candidates: Candidates) => number | null,
): Route {
  let start = 0;
  return (hashes, loads) => {
    const index = choose(hashes, start, {
      isOpen: () => true,
      inflightAt: (at) => loads[at] ?? 0,
      seedAt: (at) => Math.imul(at + 1, 0x9e3779b1),
      evenSharesOf: ({ size }) => size,
    });
    if (index === null) throw new Error('all are open');
    start = index + 1;
    return index;
  };
}

const set = new CandidateSet(REPLICAS, () => true);

const ROUTES = {
  round_robin: () => routeBy((_hashes, start, candidates) => roundRobin(set, start, candidates)),
  least_inflight: () => routeBy((_hashes, start, candidates) => leastInflight(set, start, candidates)),
  prefix_affinity() {
    const popularity = new PrefixPopularity();
    return routeBy((hashes, start, candidates) => {
      const key = popularity.match(hashes, REPLICAS)?.key ?? null;
      return key === null
        ? leastInflight(set, start, candidates)
        : ownerOfPrefix(key, set, start, candidates);
    });
  },
};

/** The most requests that one replica served, relative to the mean. */
const spreadOf = ({ served }: Outcome) => Math.max(...served) / (REQUESTS / REPLICAS);

const percent = (share: number) => `${Math.round(100 * share)} %`;

describe.each(Object.entries(WORKLOADS))('on 8 replicas, traffic of the kind "%s"', (kind, make) => {
  let byRoundRobin: Outcome;
  let byLoad: Outcome;
  let byPrefix: Outcome;

  beforeAll(() => {
    const requests = make(REQUESTS);
    byRoundRobin = simulate(requests, REPLICAS, ROUTES.round_robin());
    byLoad = simulate(requests, REPLICAS, ROUTES.least_inflight());
    byPrefix = simulate(requests, REPLICAS, ROUTES.prefix_affinity());
  });

  test('is spread evenly by round robin, and by least in flight so that loads are even', () => {
    expect(spreadOf(byRoundRobin)).toBe(1);
    expect(spreadOf(byLoad)).toBeLessThan(1.05);
    expect(byLoad.peakToMean).toBeLessThan(byRoundRobin.peakToMean);
  });

  test('is spread by prefixes so that no replica serves a quarter more than the mean', () => {
    expect(spreadOf(byPrefix)).toBeLessThan(1.25);
  });

  test('finds more of its prompts cached with prefixes than with round robin', () => {
    expect(byPrefix.cachedShare - byRoundRobin.cachedShare).toBeGreaterThan(0.15);
    expect(Math.abs(byLoad.cachedShare - byRoundRobin.cachedShare)).toBeLessThan(0.03);
  });

  test('is in docs/evidence/prefixes.md with these figures', async () => {
    const page = await readFile(join(import.meta.dirname, '../../../docs/evidence/prefixes.md'), 'utf8');
    const cached = [byRoundRobin, byLoad, byPrefix].map(({ cachedShare }) => percent(cachedShare));
    expect(page).toContain(`| ${[kind, ...cached, spreadOf(byPrefix).toFixed(2)].join(' | ')} |`);
  });
});
