import type { Comparison } from './comparison.ts';
import { differenceOf, type Figures } from './figures.ts';
import type { Dimension } from './judge.ts';

/** The figures of a comparison, by the names that the admin API has for them. Unknown ones are left out. */
export function toFigures({ figures, own, peers }: Comparison): Readonly<Record<string, number>> {
  const known = {
    requests: own,
    peer_requests: peers,
    first_token_ratio: differenceOf(figures, 'first_token'),
    gaps_ratio: differenceOf(figures, 'gaps'),
    duration_ratio: differenceOf(figures, 'duration'),
    lengths_ratio: differenceOf(figures, 'lengths'),
    cached_difference: differenceOf(figures, 'cached'),
    error_share: shareOf(figures.own),
    peer_error_share: shareOf(figures.peers),
  };
  const entries = Object.entries(known).filter((entry): entry is [string, number] => entry[1] !== null);
  return Object.fromEntries(entries.map(([name, value]) => [name, Math.round(value * 1e4) / 1e4]));
}

/** The figures that people follow, in few words: `first token ×1.02, gaps ×0.99, 0.1 % errors, 412 requests`. */
export function toShortText({ figures, own }: Comparison): string {
  if (own === 0) return 'too few requests';
  const ratio = (words: string, measure: 'first_token' | 'gaps' | 'duration') => {
    const value = differenceOf(figures, measure);
    return value === null ? [] : [`${words} ×${value.toFixed(2)}`];
  };
  return [
    ...ratio('first token', 'first_token'),
    ...ratio('gaps', 'gaps'),
    ...ratio('duration', 'duration'),
    `${percent(shareOf(figures.own) ?? 0)} errors`,
    `${own.toLocaleString('en')} requests`,
  ].join(', ');
}

/** Says what is wrong, each with its figures. */
export function toWrongText({ figures }: Pick<Comparison, 'figures'>, wrong: readonly Dimension[]): string {
  return wrong.map((dimension) => toText(figures, dimension)).join('; ');
}

function toText(figures: Figures, dimension: Dimension): string {
  switch (dimension) {
    case 'first_token':
      return `first token ${compared(differenceOf(figures, 'first_token'), 'later', 'sooner')}`;
    case 'gaps':
      return `gaps ${compared(differenceOf(figures, 'gaps'), 'longer', 'shorter')}`;
    case 'duration':
      return `responses ${compared(differenceOf(figures, 'duration'), 'slower', 'faster')}`;
    case 'lengths':
      return `completions ${compared(differenceOf(figures, 'lengths'), 'longer', 'shorter')}`;
    case 'cached':
      return `${percent(-(differenceOf(figures, 'cached') ?? 0))} less of the prompt from the cache`;
    case 'errors':
      return `${percent(shareOf(figures.own) ?? 0)} of attempts fail (peers ${percent(shareOf(figures.peers) ?? 0)})`;
    case 'finish_reasons':
      return `other finish reasons: ${toFinishText(figures.own, figures.peers, 'peers')}`;
  }
}

function compared(ratio: number | null, more: string, less: string): string {
  if (ratio === null) return 'unlike those of its peers';
  return `${percent(Math.abs(ratio - 1))} ${ratio >= 1 ? more : less}`;
}

/** The finish reason whose share differs most: `12 % length (peers 3.0 %)`. */
export function toFinishText(own: Finishes, others: Finishes, whose: string): string {
  const names = new Set([own, others].flatMap(({ finishes }) => Object.keys(finishes)));
  const shares = [...names].map((name) => ({
    name,
    own: finishShare(own, name),
    its: finishShare(others, name),
  }));
  const [most] = shares.toSorted((a, b) => Math.abs(b.own - b.its) - Math.abs(a.own - a.its));
  return most === undefined ? 'none' : `${percent(most.own)} ${most.name} (${whose} ${percent(most.its)})`;
}

type Finishes = Pick<Figures['own'], 'finishes'>;

function finishShare({ finishes }: Finishes, name: string): number {
  const total = Object.values(finishes).reduce((sum, count) => sum + count, 0);
  return (finishes[name] ?? 0) / Math.max(1, total);
}

function shareOf({ answered, errors }: Figures['own']): number | null {
  return answered === 0 ? null : errors / answered;
}

/** A share in percent; with a digit more below 10 %, and near 100 %. */
export function percent(share: number): string {
  const value = share * 100;
  return `${value === 0 || value >= 99.95 || (value >= 10 && value < 99) ? value.toFixed(0) : value.toFixed(1)} %`;
}
