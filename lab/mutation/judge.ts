import type { Outcome } from './campaign/run-room.ts';
import type { EquivalentMutants } from './equivalent.ts';
import type { Mutant } from './mutants/find-mutants.ts';

/** What the mutants of a room have shown. */
export interface Judgement {
  readonly mutantCount: number;
  readonly triedCount: number;
  readonly killedCount: number;
  readonly equivalentCount: number;
  /** Those that no test has noticed. */
  readonly left: readonly Outcome[];
  /** Of those that are not equivalent, the part that was killed; null: none was tried. */
  readonly percent: number | null;
  /** Entries of the list of equivalents that are wrong. */
  readonly wrongEntries: readonly string[];
}

/** Counts outcomes, without the mutants that are listed as equivalent. */
export function judge(outcomes: readonly Outcome[], listed: readonly EquivalentMutants[]): Judgement {
  const files = new Set(outcomes.map(({ mutant }) => mutant.file));
  const unseen = new Map<string, string>();
  for (const { file, where, changes } of listed) {
    if (!files.has(file)) continue;
    for (const [original, mutated] of changes) {
      const key = toKey(file, where, original, mutated);
      unseen.set(key, `${file} ${where}: ${original} → ${mutated}`);
    }
  }
  const isListed = (mutant: Mutant): boolean => unseen.has(identityOf(mutant));
  const wrongEntries: string[] = [];
  const equivalents = outcomes.filter(({ mutant }) => isListed(mutant));
  for (const { mutant, killed } of equivalents) {
    if (killed !== null) wrongEntries.push(`${unseen.get(identityOf(mutant))}: killed by ${killed.test}`);
  }
  const known = new Set(equivalents.map(({ mutant }) => identityOf(mutant)));
  for (const [key, text] of unseen)
    if (!known.has(key)) wrongEntries.push(`${text}: there is no such mutant`);
  const tried = outcomes.filter(({ fate }) => fate !== 'untried');
  const killedCount = tried.filter(({ fate }) => fate === 'killed').length;
  const left = tried.filter(({ fate, mutant }) => fate !== 'killed' && !isListed(mutant));
  const counted = killedCount + left.length;
  return {
    mutantCount: outcomes.length,
    triedCount: tried.length,
    killedCount,
    equivalentCount: tried.length - counted,
    left,
    percent: counted === 0 ? null : (100 * killedCount) / counted,
    wrongEntries,
  };
}

/** Whether a mutant is in the list of equivalents. */
export function isListedIn(listed: readonly EquivalentMutants[]): (mutant: Mutant) => boolean {
  const keys = new Set(
    listed.flatMap(({ file, where, changes }) =>
      changes.map(([original, mutated]) => toKey(file, where, original, mutated)),
    ),
  );
  return (mutant) => keys.has(identityOf(mutant));
}

function identityOf({ file, where, original, mutated, ordinal }: Mutant): string {
  return toKey(file, where, ordinal === 1 ? original : `${original}#${ordinal}`, mutated);
}

function toKey(...parts: readonly string[]): string {
  return JSON.stringify(parts.map(toOneLine));
}

/** A piece of source on one line. */
export function toOneLine(text: string): string {
  return text.replaceAll(/\s+/g, ' ').trim();
}
