import { expect, test } from 'vitest';
import type { BlockResult } from '../../simulation/campaign/messages.ts';
import { toSummaries } from '../../simulation/campaign/results-file.ts';

test('the results of several processes add up to one line for each commit, with the seeds that were run', () => {
  const summaries = toSummaries([
    line('aaa', 11, 20),
    line('aaa', 101, 105),
    line('aaa', 1, 10),
    { ...line('bbb', 1, 10), finding: { seed: 10, text: 'in flight at the end' } },
  ]);

  expect(summaries).toEqual([
    'aaa: 25 worlds (seeds 1 to 20, 101 to 105): 2500 steps, 75 requests, 50 records, 0.1 simulated hours, no finding, 3 s of CPU time',
    'bbb: 10 worlds (seeds 1 to 10): 1000 steps, 30 requests, 20 records, 0.0 simulated hours, findings in seeds 10, 1 s of CPU time',
  ]);
});

test('seeds that were run twice are not counted as two worlds', () => {
  expect(() => toSummaries([line('aaa', 1, 10), line('aaa', 10, 12)])).toThrow('seed 10 was run twice');
});

function line(commit: string, from: number, to: number): BlockResult & { readonly commit: string } {
  const seeds = to - from + 1;
  return {
    commit,
    from,
    to,
    seeds,
    steps: 100 * seeds,
    requests: 3 * seeds,
    records: 2 * seeds,
    simulatedMs: 12_000 * seeds,
    cpuMs: 100 * seeds,
    finding: null,
  };
}
