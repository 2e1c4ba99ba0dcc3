import { itemsOf, memberOf } from '#base/parsed';
import { toOneLine } from '#cli/terminal';
import { toCostText } from '../../tables/cost-text.ts';
import { toTimeText } from '../../tables/time-text.ts';

/** A measure, by the name that people have for it, with how many times that of its primary the shadow's value is. */
export interface ComparedRatio {
  readonly title: string;
  readonly p10: number;
  readonly median: number;
  readonly p90: number;
  /** How often each ratio came. */
  readonly counts: readonly (readonly [ratio: number, count: number])[];
}

/** One side of a comparison. */
export interface ComparedSide {
  readonly names: string;
  readonly errors: number;
  readonly finishes: readonly (readonly [reason: string, count: number])[];
  readonly tokens: number;
  readonly meanInflight: number;
  /** With its currency; null without prices. */
  readonly costPerMillion: string | null;
}

/** What a report says. All texts of it come from elsewhere, and are on one line. */
export interface ComparedPairs {
  readonly title: string;
  readonly verdict: string;
  readonly sentence: string;
  readonly settings: string;
  /** How many, in words. */
  readonly pairs: string;
  readonly ratios: readonly ComparedRatio[];
  readonly outputs: {
    readonly compared: number;
    readonly equal: number;
    readonly partsAfter: readonly number[];
  };
  readonly again: readonly (readonly [what: string, count: number])[];
  readonly tools: { readonly compared: number; readonly same: number };
  readonly candidate: ComparedSide;
  readonly baseline: ComparedSide;
  readonly skipped: readonly (readonly [why: string, count: number])[];
}

const TITLES: Readonly<Record<string, string>> = {
  first_token: 'time to the first token',
  gaps: 'gaps between tokens',
  duration: 'duration of whole responses',
  lengths: 'tokens of completions',
};

const AGAIN: Readonly<Record<string, string>> = {
  as_shadow: 'the shadow repeats its own output',
  as_primary: 'it now gives that of its primary',
  other: 'it gives a third one',
};

/** Reads the answer of GET /admin/verdict. What is not there counts as nothing. */
export function readPairs(
  answer: unknown,
  {
    candidate,
    share,
    for: length,
  }: { readonly candidate: string; readonly share: string; readonly for: string },
): ComparedPairs {
  const pairs = memberOf(answer, 'pairs');
  const outputs = memberOf(pairs, 'outputs');
  const tools = memberOf(pairs, 'tool_calls');
  const baseline = toSide(answer, 'baseline');
  const times = ['since', 'until'].map((name) => toTimeText(memberOf(answer, name)));
  return {
    title: toOneLine(`${candidate} beside ${baseline.names}`),
    verdict: toOneLine(String(memberOf(answer, 'verdict'))),
    sentence: toOneLine(`${candidate} ${String(memberOf(answer, 'sentence'))}`),
    settings: toOneLine(`${share} of the requests were copied for ${length}, ${times.join(' to ')}`),
    pairs: toPairsText(numberOf(answer, 'requests'), numberOf(pairs, 'waiting')),
    ratios: Object.entries(TITLES).flatMap(([measure, title]) => {
      const ratio = memberOf(memberOf(pairs, 'ratios'), measure);
      if (ratio === undefined) return [];
      const counts = itemsOf(ratio, 'counts').flatMap((entry) =>
        Array.isArray(entry) ? [[Number(entry[0]), Number(entry[1])] as const] : [],
      );
      const [p10, median, p90] = ['p10', 'median', 'p90'].map((name) => numberOf(ratio, name));
      return [{ title, p10: p10 ?? 0, median: median ?? 0, p90: p90 ?? 0, counts }];
    }),
    outputs: {
      compared: numberOf(outputs, 'compared'),
      equal: numberOf(outputs, 'equal'),
      partsAfter: itemsOf(outputs, 'parts_after').map(Number),
    },
    again: countsOf(memberOf(outputs, 'again')).map(([what, count]) => [AGAIN[what] ?? what, count]),
    tools: { compared: numberOf(tools, 'compared'), same: numberOf(tools, 'same') },
    candidate: toSide(answer, 'candidate'),
    baseline,
    skipped: countsOf(memberOf(pairs, 'skipped')),
  };
}

function toPairsText(compared: number, waiting: number): string {
  const rest = waiting === 0 ? '' : `, ${waiting} of them not compared (a block has at least ten)`;
  return `${(compared + waiting).toLocaleString('en')} pairs of answers to the same requests${rest}`;
}

function toSide(answer: unknown, name: 'candidate' | 'baseline'): ComparedSide {
  const pairs = memberOf(answer, 'pairs');
  const side = memberOf(pairs, name);
  const cost = memberOf(side, 'cost_per_million');
  return {
    names: toOneLine(itemsOf(answer, name).map(String).join(', ')),
    errors: numberOf(side, 'errors'),
    finishes: countsOf(memberOf(side, 'finishes')),
    tokens: numberOf(side, 'completion_tokens'),
    meanInflight: numberOf(side, 'mean_inflight'),
    costPerMillion: typeof cost === 'number' ? toCostText(cost, memberOf(pairs, 'currency')) : null,
  };
}

function numberOf(value: unknown, name: string): number {
  const found = memberOf(value, name);
  return typeof found === 'number' ? found : 0;
}

function countsOf(value: unknown): readonly (readonly [string, number])[] {
  const entries = Object.entries(typeof value === 'object' && value !== null ? value : {});
  return entries.flatMap(([name, count]) =>
    typeof count === 'number' ? [[toOneLine(name), count] as const] : [],
  );
}
