import { setTimeout as sleep } from 'node:timers/promises';
import { Load } from '#testkit/load/load.ts';
import { type GatewayProcess, startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { startReplicaSet } from '#testkit/programs/replica-set.ts';
import { printFailures, readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { Stage } from './stage.ts';

const USAGE = `npm run lab -- conditions/calm [options]
  Sends mixed requests to a gateway with health checks before four well replicas, and looks for conditions. Nothing is
  wrong: exits with 1 if one is told, or if a request fails.
  --minutes N     how long (60)
  --per-second N  requests (300)
  --write         writes the result into docs/evidence/conditions.md`;

const values = startProgram(USAGE, {
  minutes: { type: 'string', default: '60' },
  'per-second': { type: 'string', default: '300' },
  write: { type: 'boolean', default: false },
});
const minutes = toCount(values.minutes);
const perSecond = toCount(values['per-second']);

await using stage = await Stage.open();
const collector = await stage.collector();
const replicas = stage.use(await startReplicaSet(() => ({ untilEnded: async () => undefined })));
const gateway = stage.use(
  await startGateway(await stage.folder('gateway'), {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    state_dir: await stage.folder('state'),
    replicas: replicas.replicas.map((replica) => ({ ...replica, models: ['m'] })),
    health: {},
    export: { endpoint: collector.url },
  }),
);
const load = new Load(gateway.url, perSecond);
let printed = 0;
for (let minute = 1; minute <= minutes; minute++) {
  await sleep(60_000);
  const told = toldBy(gateway);
  console.log(`${minute} minutes: ${told.length} conditions`);
  for (const line of told.slice(printed)) console.log(`  ${line}`);
  printed = told.length;
}
const { requests, perSecond: reached, failures } = await load.stop();
const told = toldBy(gateway);
printFailures([...told, ...failures]);
const rate = `${requests.toLocaleString('en')} requests in ${minutes} minutes (${Math.round(reached)} per second of ${perSecond})`;
const result = `${rate}, ${failures.length} failed; ${told.length} conditions were told.`;
console.log(result);
if (told.length > 0 || failures.length > 0) process.exitCode = 1;
else if (values.write) {
  const { date, commit, machine } = readCircumstances();
  const text = `On ${date} at commit ${commit}, on ${machine}: ${result}`;
  replaceBetween('docs/evidence/conditions.md', '<!-- calm -->', '<!-- end of calm -->', text);
}

/** The conditions that have begun. */
function toldBy({ log }: GatewayProcess): readonly string[] {
  return log
    .map((line) => JSON.parse(line) as { readonly condition?: string; readonly msg: string })
    .filter(({ condition, msg }) => condition !== undefined && !msg.startsWith('over: '))
    .map(({ condition, msg }) => `${condition}: ${msg}`);
}
