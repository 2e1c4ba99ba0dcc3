import { memberOf } from '#base/parsed';
import type { AdminClient } from './client.ts';

/** What is asked of gateways. */
export interface VerdictQuestion {
  readonly candidate: string;
  /** Null: all other replicas that serve a model of the candidate. */
  readonly baseline: string | null;
  /** In RFC 3339; null: since the candidate changed. */
  readonly since: string | null;
  /** The probability with which a candidate that is like its baseline may be called bad. Default: that of the gateway. */
  readonly falseAlarm?: number;
  /** Of shadows: how much slower they may be, such as `1%`. Default: that of the gateway. */
  readonly tolerance?: string;
}

/** What the gateways say together. */
export interface GatewayVerdict {
  readonly verdict: 'good' | 'bad' | 'undecided';
  /** One line that follows the name of the candidate. Like all texts it comes from elsewhere. */
  readonly sentence: string;
  readonly summary: string;
  readonly figures: Readonly<Record<string, number>>;
  /** The answer of the gateway whose verdict it is. */
  readonly answer: unknown;
}

/** What the admin API means without the parameter. */
const FALSE_ALARM = 0.001;
const MISSED = 0.05;

/**
 * Asks gateways for the verdict of each on its own requests. One bad verdict is bad for all, and then one good one is good:
 * the probability of a wrong one is divided among them. Throws what a call throws.
 */
export async function callVerdict(
  clients: readonly AdminClient[],
  { candidate, baseline, since, falseAlarm = FALSE_ALARM, tolerance }: VerdictQuestion,
  signal?: AbortSignal,
): Promise<GatewayVerdict> {
  const query = new URLSearchParams({
    candidate,
    ...(baseline === null ? {} : { baseline }),
    ...(since === null ? {} : { since }),
    ...(tolerance === undefined ? {} : { tolerance }),
    false_alarm: toText(falseAlarm / clients.length),
    missed: toText(MISSED / clients.length),
  });
  const answers = await Promise.all(
    clients.map((client) => client.call('GET', `/admin/verdict?${query}`, signal)),
  );
  const verdicts = answers.map(toVerdict);
  const first = (kind: GatewayVerdict['verdict']) => verdicts.find(({ verdict }) => verdict === kind);
  const [most] = verdicts.toSorted((a, b) => (b.figures.requests ?? 0) - (a.figures.requests ?? 0));
  const found = first('bad') ?? first('good') ?? most;
  if (found === undefined) throw new Error('a verdict needs a gateway');
  return found;
}

function toText(probability: number): string {
  return probability.toFixed(12);
}

function toVerdict(answer: unknown): GatewayVerdict {
  const verdict = memberOf(answer, 'verdict');
  const entries = Object.entries(memberOf(answer, 'figures') ?? {});
  return {
    verdict: verdict === 'good' || verdict === 'bad' ? verdict : 'undecided',
    sentence: String(memberOf(answer, 'sentence')),
    summary: String(memberOf(answer, 'summary')),
    figures: Object.fromEntries(entries.filter((entry) => typeof entry[1] === 'number')),
    answer,
  };
}
