import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { type Judgement, toOneLine } from './judge.ts';
import type { MutatedRoom } from './rooms.ts';

const MAX_SHOWN_CHARS = 90;

/** Writes the result of a room into docs/evidence/mutation.md. `seed`: that of a sample; null: it is none. */
export function writeRoom(
  { name, firstPercent }: MutatedRoom,
  judgement: Judgement,
  seed: number | null,
): void {
  const { date, commit, machine } = readCircumstances();
  const { mutantCount, triedCount, killedCount, equivalentCount, left } = judgement;
  const tried =
    triedCount === mutantCount
      ? `${mutantCount} mutants`
      : `${triedCount} of ${mutantCount} mutants (${seed === null ? 'time was bounded' : `a sample with seed ${seed}`})`;
  const lines = [
    `**${toPercent(judgement.percent)}** (at first ${toPercent(firstPercent)}): ${tried}, ${killedCount} killed, ` +
      `${equivalentCount} equivalent, ${left.length} left.`,
    `${date}, ${commit}, ${machine}.`,
  ];
  const places = left.map(({ mutant: { file, where, original, mutated }, fate }) => {
    const place = `${file}${where === '' ? '' : `, ${where}`}`;
    return `- ${place}: ${toCode(original)} → ${toCode(mutated)}${fate === 'unreached' ? ' (no test runs it)' : ''}`;
  });
  const list = places.length === 0 ? [] : ['', ...places];
  const marker = `<!-- mutants of ${name} -->`;
  replaceBetween('docs/evidence/mutation.md', marker, '<!-- end -->', [...lines, ...list].join('\n'));
}

/** As documents and the program print a score. */
export function toPercent(percent: number | null): string {
  return percent === null ? 'not tried' : `${percent.toFixed(1)} %`;
}

function toCode(text: string): string {
  const line = toOneLine(text).replaceAll('`', "'");
  if (line === '') return 'nothing';
  return `\`${line.length > MAX_SHOWN_CHARS ? `${line.slice(0, MAX_SHOWN_CHARS - 1)}…` : line}\``;
}
