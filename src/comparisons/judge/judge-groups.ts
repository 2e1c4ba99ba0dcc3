import type { RegisteredReplica } from '#replicas/registry';
import type { GroupComparison, JudgeSettings } from '#verdict';
import { type Judgement, toOutlookText } from '#verdict/judgement';
import type { Groups } from '../groups/find-groups.ts';
import type { Moment, RunningComparison } from './running-comparison.ts';

/** What can be wrong with a candidate besides what its requests show beside those of its peers. */
export const WRONG_BY_ITSELF = ['unreachable', 'failing', 'silent'] as const;

/** What has been found out so far. */
export interface Verdict {
  readonly verdict: 'good' | 'bad' | 'undecided';
  /** One line that follows the name of the candidate. */
  readonly sentence: string;
  /** The figures that people follow, in few words. */
  readonly summary: string;
  /** What is wrong: codes; none unless it is bad. */
  readonly reasons: readonly string[];
  /** The requests that have been compared. */
  readonly requests: number;
  readonly baselineRequests: number;
  /** About how many further requests of the candidate are needed; null if it is decided, or if more will not tell. */
  readonly requestsNeeded: number | null;
  /** By the names that the admin API has for them. */
  readonly figures: Readonly<Record<string, number>>;
}

/** A replica that cannot be reached, or is failing, for so long is bad. */
const AWAY_MS = 5_000;

/** What is known of the replicas when they are judged. */
export interface JudgeSurroundings {
  readonly moment: Pick<Moment, 'groups'>;
  /** The replicas that there are, by name. */
  readonly replicas: ReadonlyMap<string, RegisteredReplica>;
}

/** Judges the candidate of a comparison. `running`: whose silence this gateway sees. */
export function judgeGroups(
  { comparison, running }: { readonly comparison: GroupComparison; readonly running: RunningComparison },
  surroundings: JudgeSurroundings & { readonly moment: Moment },
  settings: JudgeSettings,
): Verdict {
  const known = {
    summary: comparison.toText(),
    requests: comparison.requests,
    baselineRequests: comparison.peerRequests,
    figures: comparison.toFigures(),
  };
  const inflightOf = (name: string) => surroundings.replicas.get(name)?.inflight ?? 0;
  const silent = () => running.silentOnes(surroundings.moment, inflightOf);
  const itself = findWrongByItself(silent, surroundings);
  if (itself !== null) return { ...known, ...itself, verdict: 'bad', requestsNeeded: null };
  const judgement = comparison.judge(settings);
  const why = `${comparison.explain(judgement.wrong)} (${known.requests.toLocaleString('en')} requests)`;
  return toVerdict(known, judgement, { peers: 'its peers', why, more: 'more' });
}

/** Says what a comparison has shown. `peers`: with whom. `why`: what is wrong, if anything is. */
export function toVerdict(
  known: Pick<Verdict, 'summary' | 'requests' | 'baselineRequests' | 'figures'>,
  { kind, wrong, outlook }: Judgement<string>,
  { peers, why, more }: Readonly<{ peers: string; why: string; more: 'more' | 'more pairs' }>,
): Verdict {
  const say = {
    bad: ['bad', `is worse than ${peers}: ${why}`],
    good: ['good', `is as good as ${peers}: ${known.summary}`],
    open: ['undecided', `cannot be judged yet: ${known.summary}; ${toOutlookText(outlook, more)}`],
  } as const;
  const [verdict, sentence] = say[kind];
  return { ...known, verdict, sentence, reasons: wrong, requestsNeeded: outlook?.needed ?? null };
}

/** What is wrong with a candidate whatever its answers are. `silentOnes`: those that answer nothing, asked if need be. */
export function findWrongByItself(
  silentOnes: () => readonly string[],
  { moment, replicas }: JudgeSurroundings,
): Pick<Verdict, 'sentence' | 'reasons'> | null {
  const { groups } = moment;
  const own = [...groups.candidate].flatMap((name) => replicas.get(name) ?? []);
  const away = own.find(({ reachability: { reason, lastedMs } }) => reason !== null && lastedMs >= AWAY_MS);
  if (away !== undefined) {
    return { reasons: ['unreachable'], sentence: say(groups, away.name, 'does not answer any more') };
  }
  const failing = own.find(({ health }) => health?.state === 'failing' && health.lastedMs >= AWAY_MS);
  if (failing !== undefined) {
    const why = failing.health?.failingBy.join(', ');
    const text = `is failing by the gateway's health checks (${why}), with ${failing.inflight} requests in flight`;
    return { reasons: ['failing'], sentence: say(groups, failing.name, text) };
  }
  const inflightOf = (name: string) => replicas.get(name)?.inflight ?? 0;
  const [silent] = silentOnes();
  if (silent === undefined) return null;
  const text = `is silent: ${inflightOf(silent)} requests in flight, and none ends while those of its peers do`;
  return { reasons: ['silent'], sentence: say(groups, silent, text) };
}

/** Of a group, it is said which one is meant. */
function say({ candidate }: Groups, replica: string, text: string): string {
  return candidate.size === 1 ? text : `has a replica, ${replica}, that ${text}`;
}
