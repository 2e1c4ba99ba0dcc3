import { describe, expect, test } from 'vitest';
import { toMarkdownReport } from '../../../src/cli/operate/compare/compare.ts';
import { toHtmlReport } from '../../../src/cli/operate/compare/html-report.ts';
import { readPairs } from '../../../src/cli/operate/compare/read-pairs.ts';

const HOSTILE = '<img src=x onerror=alert(1)>|b';

/** The answer of a gateway whose texts are not what they should be. */
const compared = readPairs(
  {
    verdict: HOSTILE,
    sentence: HOSTILE,
    requests: 12,
    since: HOSTILE,
    until: HOSTILE,
    candidate: [HOSTILE],
    baseline: ['a'],
    pairs: {
      ratios: {
        first_token: {
          p10: 0.9,
          median: 1.02,
          p90: 1.3,
          counts: [
            [0.9, 2],
            [1.02, 7],
            [1.3, 3],
          ],
        },
      },
      outputs: { compared: 9, equal: 4, parts_after: [1, 0, 4], again: { as_shadow: 4, [HOSTILE]: 1 } },
      candidate: { errors: 0, finishes: { [HOSTILE]: 3 }, completion_tokens: 30, mean_inflight: 1 },
      baseline: { errors: 0, finishes: { stop: 3 }, completion_tokens: 30, mean_inflight: 1 },
      skipped: { [HOSTILE]: 2 },
    },
  },
  { candidate: HOSTILE, share: '10%', for: '30m' },
);

describe('a report of pairs', () => {
  test('in HTML shows texts of others as text, and loads nothing', () => {
    const html = toHtmlReport(compared);
    expect(html).not.toContain('<img');
    expect(html).toContain('&#60;img');
    expect(html).toContain('<div class="plot"');
    expect(html).not.toMatch(/<script|<link|@import|url\(/);
  });

  test('in Markdown has three cells in each row of its tables, whatever the texts hold', () => {
    const rows = toMarkdownReport(compared)
      .split('\n')
      .filter((line) => line.startsWith('| ended with') || line.startsWith('| replicas'));
    expect(rows).toHaveLength(3);
    for (const row of rows) expect(row.match(/(?<!\\)\|/g)).toHaveLength(4);
  });

  test('counts also the pairs that were too few for a block', () => {
    const reportOf = (requests: number, waiting: number) => {
      const answer = { requests, pairs: { waiting } };
      return toMarkdownReport(readPairs(answer, { candidate: 's', share: '10%', for: '1m' }));
    };
    expect(reportOf(0, 5)).toContain(
      ': 5 pairs of answers to the same requests, 5 of them not compared (a block has at least ten).',
    );
    expect(reportOf(1_200, 0)).toContain(': 1,200 pairs of answers to the same requests.');
  });

  test('says why a side has no cost: no tokens, or no prices', () => {
    const idle = { ...compared, candidate: { ...compared.candidate, tokens: 0 } };
    expect(toMarkdownReport(idle)).toMatch(/^\| cost of .* \| no tokens \| no prices \|$/m);
  });
});
