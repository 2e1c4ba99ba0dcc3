import type { ComparedSide } from './read-pairs.ts';

/** What is told of both sides: what it is, and the values of the candidate and of the baseline. */
export type SideRow = readonly [what: string, candidate: string, baseline: string];

/** The rows of the table of both sides, as plain text. */
export function toSideRows(candidate: ComparedSide, baseline: ComparedSide): readonly SideRow[] {
  const reasons = new Set([...candidate.finishes, ...baseline.finishes].map(([reason]) => reason));
  const row = (what: string, of: (side: ComparedSide) => string): SideRow => [
    what,
    of(candidate),
    of(baseline),
  ];
  return [
    row('replicas', ({ names }) => names),
    row('answers that failed', ({ errors }) => String(errors)),
    row('requests in flight on average', ({ meanInflight }) => meanInflight.toFixed(1)),
    row('tokens of completions', ({ tokens }) => tokens.toLocaleString('en')),
    ...[...reasons].map((reason) =>
      row(`ended with ${reason}`, ({ finishes }) =>
        String(finishes.find(([name]) => name === reason)?.[1] ?? 0),
      ),
    ),
    row(
      'cost of a million tokens of completions',
      ({ costPerMillion, tokens }) => costPerMillion ?? (tokens === 0 ? 'no tokens' : 'no prices'),
    ),
  ];
}
