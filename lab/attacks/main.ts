import { startProgram } from '../support/program.ts';
import { readCircumstances, replaceBetween } from '../support/results.ts';
import { ATTACKS } from './attacks.ts';
import { judge } from './judge.ts';
import { type Outcome, startAttackedGateway } from './run-attack.ts';

const USAGE = `npm run lab -- attacks [options]
  Attacks a gateway on the wire, from clients and from a replica, and writes the table of docs/security.md. Exits with 1
  if an attack does not end as expected. Linux only.
  --only TEXT  only attacks with this text in their name; writes nothing`;

const { only } = startProgram(USAGE, { only: { type: 'string' } });
const attacks = ATTACKS.flatMap(({ group, attacks: all }) => all.map((attack) => ({ group, attack })));
const chosen = attacks.filter(({ attack }) => attack.name.includes(only ?? ''));
const rows = new Map<string, Outcome[]>();
await using gateway = await startAttackedGateway();
for (const { group, attack } of chosen) {
  const outcome = await gateway.run(attack);
  rows.set(group, [...(rows.get(group) ?? []), outcome]);
  console.log(`${group}: ${attack.name}: ${outcome.statuses.join(' ')}, ${toFigures([outcome]).join(', ')}`);
  for (const flaw of judge(attack, outcome)) {
    console.log(`  NOT AS EXPECTED: ${flaw}`);
    process.exitCode = 1;
  }
}
if (only === undefined && process.exitCode === undefined) {
  const { date, commit, machine } = readCircumstances();
  const text = [
    `Measured on ${date} at commit ${commit}, with Node ${process.version} on ${machine}, shared with other work: the`,
    'turns of the event loop include what the others took.',
    '',
    '| attacks | number | memory grew by at most | longest turn of the event loop |',
    '|---|---|---|---|',
    ...[...rows].map(
      ([group, outcomes]) => `| ${[group, outcomes.length, ...toFigures(outcomes)].join(' | ')} |`,
    ),
  ].join('\n');
  replaceBetween('docs/security.md', '<!-- attacks -->', '<!-- end of attacks -->', text);
}

function toFigures(outcomes: readonly Outcome[]): readonly string[] {
  const grownBytes = Math.max(...outcomes.map((outcome) => outcome.grownBytes));
  const longestMs = Math.max(...outcomes.map(({ longestTurnMs }) => longestTurnMs));
  return [`${(grownBytes / 1e6).toFixed(1)} MB`, `${longestMs.toFixed(0)} ms`];
}
