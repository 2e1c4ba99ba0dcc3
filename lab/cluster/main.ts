import { spawnSync } from 'node:child_process';
import { mkdtempDisposableSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProgram } from '#testkit/programs/program.ts';
import { readCircumstances, replaceBetween } from '#testkit/programs/results.ts';
import { findHelm, findPrograms } from './kubernetes/control-plane.ts';
import type { Scene } from './scene.ts';
import { API_SCENES } from './scenes/api-server.ts';
import { FLEET_SCENES } from './scenes/fleet.ts';
import { GATE_SCENES } from './scenes/gate.ts';
import { JUDGED_SCENES } from './scenes/judged.ts';
import { MANY_SCENES } from './scenes/many.ts';
import { POD_SCENES } from './scenes/pods.ts';
import { Stage } from './stage.ts';

const USAGE = `npm run lab -- cluster [options]
  Starts a real Kubernetes control plane in a network namespace of its own, installs the chart with helm, and runs the
  gateway as the chart's pod would: with its configuration, its token, its user and a file system that it cannot write.
  Nodes, kubelets and engines are played. Tries a promise of docs/kubernetes.md in each scene. Exits with 1 if one does
  not hold. Needs root, Go (to build Kubernetes once: 10 minutes), iproute2, util-linux, openssl, curl and redis-server.
  --only IDS            these scenes alone, and install, separated by commas
  --fast                those that take less than a minute
  --kubernetes VERSION  another one than that of scripts/kubernetes/build.sh
  --write               writes the table of docs/evidence/cluster.md, if all are played`;

const values = startProgram(USAGE, {
  only: { type: 'string' },
  fast: { type: 'boolean', default: false },
  kubernetes: { type: 'string' },
  write: { type: 'boolean', default: false },
});

const LAST_LINES = 20;
/** Set for the process inside. */
const INSIDE = 'SPANGATE_CLUSTER_FOLDER';
/** In this order: each scene leaves what the next one begins with. */
const SCENES: readonly Scene[] = [
  ...POD_SCENES,
  ...GATE_SCENES,
  ...API_SCENES,
  ...MANY_SCENES,
  ...JUDGED_SCENES,
  ...FLEET_SCENES,
];

const folder = process.env[INSIDE];
if (folder === undefined) await enter();
else await play(folder);

/** Starts this program once more, in namespaces that end with it. */
async function enter(): Promise<void> {
  if (process.getuid?.() !== 0) {
    console.error('the cluster needs namespaces of its own: run it as root');
    process.exitCode = 1;
    return;
  }
  // Inside there is no network to build them with.
  const parts = SCENES.filter(isWanted).flatMap(({ part }) => part ?? []);
  for (const part of ['etcd', 'kwok', ...parts]) await findPrograms(part);
  await findPrograms('kubernetes', ...version());
  await findHelm();
  using temporary = mkdtempDisposableSync(join(tmpdir(), 'spangate-cluster-'));
  const spaces = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
  const { status } = spawnSync(
    'unshare',
    [...spaces, process.execPath, ...process.execArgv, ...process.argv.slice(1)],
    {
      stdio: 'inherit',
      env: { ...process.env, [INSIDE]: temporary.path },
    },
  );
  process.exitCode = status ?? 1;
}

function version(): readonly string[] {
  return values.kubernetes === undefined ? [] : [values.kubernetes];
}

/** Whether the options name a scene: the others need `install`. */
function isWanted({ id, isSlow = false }: Scene): boolean {
  const only = values.only?.split(',');
  return id === 'install' || (only === undefined ? !(values.fast && isSlow) : only.includes(id));
}

async function play(inside: string): Promise<void> {
  await using stage = await Stage.open(inside, ...version());
  console.log(`Kubernetes ${stage.plane.version}`);
  const rows: string[] = [];
  for (const scene of SCENES) {
    if (!isWanted(scene)) continue;
    const startedMs = performance.now();
    try {
      const seen = await scene.play(stage);
      rows.push(`| \`${scene.id}\` | ${scene.promise} | ${seen} |`);
      console.log(
        `ok      ${scene.id.padEnd(20)}${Math.round((performance.now() - startedMs) / 1_000)} s  ${seen}`,
      );
    } catch (error) {
      console.error(
        `FAILED  ${scene.id.padEnd(20)}${error instanceof Error ? error.message : String(error)}`,
      );
      if (error instanceof Error && error.cause !== undefined) console.error('       ', error.cause);
      for (const { pod, lines } of stage.gateways)
        console.error(`what ${pod.metadata.name} logged last:\n${lines.slice(-LAST_LINES).join('\n')}`);
      process.exitCode = 1;
      break; // the next ones begin with what this one leaves
    }
  }
  if (values.write && SCENES.every(isWanted) && process.exitCode === undefined) write(stage, rows);
}

function write({ plane, quotes }: Stage, rows: readonly string[]): void {
  const { date, commit, machine } = readCircumstances();
  const text = [
    `Kubernetes ${plane.version}, on ${date} at commit ${commit}, with Node ${process.version} on ${machine}.`,
    '',
    '| Scene | Promise | Seen |',
    '|---|---|---|',
    ...rows,
    ...[...quotes].flatMap(([tool, lines]) => ['', `What ${tool} logged:`, '', '```text', ...lines, '```']),
  ].join('\n');
  const marker = values.kubernetes === undefined ? 'cluster' : 'older cluster';
  replaceBetween('docs/evidence/cluster.md', `<!-- ${marker} -->`, `<!-- end of ${marker} -->`, text);
}
