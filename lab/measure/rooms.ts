import { readdirSync, readFileSync } from 'node:fs';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { hrtime } from 'node:process';
import { pathToFileURL } from 'node:url';
import { startChatClients, WARM_REQUESTS } from '#testkit/load/cpu-of-chats.ts';
import { startPlainReplica } from '#testkit/load/plain-replica.ts';
import { startGateway } from '#testkit/programs/gateway-process.ts';
import { startProgram, toCount } from '#testkit/programs/program.ts';
import { ROOT, readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { readEntryPoint } from '../bench/targets/as-in-image.ts';
import { type CallFrame, type CpuProfile, readSamples } from './profiles/cpu-profile.ts';

const values = startProgram(
  `npm run lab -- measure/rooms [options]
  Which rooms of the code a plain request spends its time in, with the defaults and nothing else: what a capability costs
  that is off. From a profile by V8 of all threads. Time in Node and the kernel counts for the room that called them.
  --requests N  how many requests (default 100000)
  --write       writes the table into docs/evidence/benchmarks.md`,
  { requests: { type: 'string', default: '100000' }, write: { type: 'boolean', default: false } },
);
const REQUESTS = toCount(values.requests);

/** As the image starts it. */
const FLAGS = readEntryPoint(ROOT).filter((arg) => arg.startsWith('--'));
const NOBODY = 'V8 and Node, called by no room';

/** The folder of each room, the inner ones first, by its URL. */
const FOLDERS: readonly (readonly [folder: string, door: string])[] = Object.entries(
  JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).imports as Record<string, string>,
)
  .map(([door, file]) => [`${pathToFileURL(join(ROOT, dirname(file))).href}/`, door] as const)
  .toSorted(([a], [b]) => b.length - a.length);

const nowUs = () => Number(hrtime.bigint() / 1_000n);

/** Loads a gateway and returns the profiles of its threads, and between which moments it was loaded. */
async function profile() {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-rooms-'));
  await using stack = new AsyncDisposableStack();
  const replica = stack.use(await startPlainReplica());
  const gateway = stack.use(
    await startGateway(
      folder.path,
      {
        gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
        state_dir: join(folder.path, 'state'),
        replicas: [{ name: 'a', url: replica.url, models: ['m'] }],
        export: { endpoint: replica.url },
      },
      {},
      {
        command: [
          process.execPath,
          ...['--cpu-prof', '--cpu-prof-interval=500', `--cpu-prof-dir=${folder.path}/profiles`],
          ...[...FLAGS, join(ROOT, 'src/main.ts')],
        ],
      },
    ),
  );
  const clients = stack.use(startChatClients(gateway.url));
  await clients.send(WARM_REQUESTS);
  const fromUs = nowUs();
  await clients.send(REQUESTS);
  const untilUs = nowUs();
  await gateway.end('SIGTERM');
  const names = readdirSync(join(folder.path, 'profiles'));
  const profiles = names.map((name) =>
    JSON.parse(readFileSync(join(folder.path, 'profiles', name), 'utf8')),
  ) as CpuProfile[];
  return { profiles, fromUs, untilUs };
}

/** Whose time it is: the innermost room on the stack. */
function toRoom(stack: readonly CallFrame[]): string {
  if (stack[0]?.functionName === '(garbage collector)') return 'collecting garbage';
  for (const { url } of stack) {
    const door = FOLDERS.find(([folder]) => url.startsWith(folder))?.[1];
    if (door !== undefined) return door;
  }
  return NOBODY;
}

/** The rooms of what is off without a key of the configuration: keys, tokens, limits, TLS, a fleet, shadows, ramps, rollouts, the spool. */
const OFF = [
  ...['#access/certificates', '#access/clients', '#access/jwt', '#access/limits', '#background', '#fleet'],
  ...['#otel/disk', '#replicas/ramps', '#rollout', '#rollout-board', '#shadow', '#statement'],
];
const LEAST_SHARE = 0.005;

const { profiles, fromUs, untilUs } = await profile();
const rooms = new Map<string, number>();
for (const each of profiles) {
  for (const { label, us, untilUs: endUs } of readSamples(each, toRoom)) {
    const now = each.startTime + endUs;
    if (label !== null && now >= fromUs && now <= untilUs) rooms.set(label, (rooms.get(label) ?? 0) + us);
  }
}
const allUs = rooms.values().reduce((sum, us) => sum + us, 0);
const off = OFF.map((room) => rooms.get(room) ?? 0);
const on = [...rooms].filter(([room]) => !OFF.includes(room)).toSorted(([, a], [, b]) => b - a);
const large = on.filter(([, us]) => us / allUs >= LEAST_SHARE);
const sum = (all: readonly number[]) => all.reduce((before, us) => before + us, 0);
const toRow = (name: string, us: number) =>
  `| ${name} | ${((100 * us) / allUs).toFixed(1)} % | ${(us / REQUESTS).toFixed(2)} |`;
const { date, commit, machine } = readCircumstances();
const table = `${date}, commit ${commit}, ${machine}; ${REQUESTS.toLocaleString('en')} plain requests.

| | of the time | µs per request |
|---|---:|---:|
${large.map(([room, us]) => toRow(room.startsWith('#') ? `\`${room}\`` : room, us)).join('\n')}
${toRow(`${on.length - large.length} other rooms`, sum(on.slice(large.length).map(([, us]) => us)))}
${toRow(`what is off: ${OFF.map((room) => `\`${room}\``).join(', ')}`, sum(off))}`;
console.log(table);
if (values.write)
  replaceBetween('docs/evidence/benchmarks.md', '<!-- measured: measure/rooms -->', '<!-- end -->', table);
