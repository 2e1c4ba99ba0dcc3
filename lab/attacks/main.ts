import { startProgram } from '#testkit/programs/program.ts';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { ATTACKS } from './attacks.ts';
import { judge, judgeTls } from './judge.ts';
import type { Cost } from './measured-gateway.ts';
import { startAttackedGateway } from './run-attack.ts';
import { TLS_REPLICA } from './tls/replica/replica-attacks.ts';
import { startAttackedByReplica } from './tls/replica/start-attacked-by-replica.ts';
import { startTlsAttackedGateways } from './tls/run-tls-attack.ts';
import { TLS_ATTACKS } from './tls/tls-attacks.ts';

const USAGE = `npm run lab -- attacks [options]
  Attacks gateways on the wire, HTTP and TLS, from clients and from a replica, and writes the table of docs/evidence/attacks.md. Exits with 1
  if an attack does not end as expected. Linux only.
  --only TEXT  only attacks with this text in their name; writes nothing`;

const { only } = startProgram(USAGE, { only: { type: 'string' } });
const rows = new Map<string, Cost[]>();
await using gateway = await startAttackedGateway();
for (const { group, attack } of choose(ATTACKS)) {
  const outcome = await gateway.run(attack);
  report(group, `${attack.name}: ${outcome.statuses.join(' ')}`, outcome, judge(attack, outcome));
}
await using gateways = await startTlsAttackedGateways();
for (const { group, attack } of choose(TLS_ATTACKS)) {
  const outcome = await gateways.run(attack, attack.listeners);
  report(group, `${attack.name}: ${outcome.outcome}`, outcome, judgeTls(attack, outcome));
}
await using attackedByReplica = await startAttackedByReplica();
for (const { group, attack } of choose([{ group: 'TLS: hostile replica', attacks: TLS_REPLICA }])) {
  const outcome = await attackedByReplica.run(attack);
  report(group, `${attack.name}: ${outcome.statuses.join(' ')}`, outcome, judge(attack, outcome));
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
  replaceBetween('docs/evidence/attacks.md', '<!-- attacks -->', '<!-- end of attacks -->', text);
}

interface Group<A> {
  readonly group: string;
  readonly attacks: readonly A[];
}

function choose<A extends { readonly name: string }>(groups: readonly Group<A>[]) {
  const all = groups.flatMap(({ group, attacks }) => attacks.map((attack) => ({ group, attack })));
  return all.filter(({ attack }) => attack.name.includes(only ?? ''));
}

function report(group: string, text: string, cost: Cost, flaws: readonly string[]): void {
  rows.set(group, [...(rows.get(group) ?? []), cost]);
  console.log(`${group}: ${text}, ${toFigures([cost]).join(', ')}`);
  for (const flaw of flaws) {
    console.log(`  NOT AS EXPECTED: ${flaw}`);
    process.exitCode = 1;
  }
}

function toFigures(outcomes: readonly Cost[]): readonly string[] {
  const grownBytes = Math.max(...outcomes.map((outcome) => outcome.grownBytes));
  const longestMs = Math.max(...outcomes.map(({ longestTurnMs }) => longestTurnMs));
  return [`${(grownBytes / 1e6).toFixed(1)} MB`, `${longestMs.toFixed(0)} ms`];
}
