import { execFile } from 'node:child_process';
import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { startChild } from '#testkit/programs/child.ts';
import { startProgram } from '#testkit/programs/program.ts';
import { ROOT } from '#testkit/programs/results.ts';

const USAGE = `npm run lab -- systemd
  Boots a systemd in namespaces of its own, installs deploy/systemd into it as docs/install.md says, and starts the unit:
  it serves as its own user within the limits of the unit, is reloaded, comes back after a SIGKILL, lets a stream end when
  it is stopped, and does not come back after a wrong configuration. Exits with 1 if one of these fails. Needs root, and
  systemd, util-linux, iproute2 and curl. Takes a minute.`;

startProgram(USAGE, {});
const run = promisify(execFile);
const WAIT_MS = 60_000;
const CONFIG = {
  gateway: { listen: '127.0.0.1:8080', admin_listen: '127.0.0.1:9090' },
  replicas: [{ name: 'a', url: 'http://127.0.0.1:8000', models: ['demo'] }],
  export: { endpoint: 'http://127.0.0.1:4318' },
  shutdown: { delay: '1s', grace: '20s', flush: '1s' },
};

await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-systemd-'));
const root = join(folder.path, 'root');
const spaces = ['--mount', '--pid', '--fork', '--kill-child', '--cgroup', '--uts', '--ipc', '--net'];
await using machine = startChild(
  {
    file: 'unshare',
    args: [...spaces, 'sh', join(import.meta.dirname, 'boot.sh'), root, ROOT, process.execPath],
  },
  { logPath: join(folder.path, 'log') },
);

/** Runs a command in the machine; resolves with what it printed, also if it failed. */
async function inside(...command: readonly string[]): Promise<string> {
  const pid = await findInit();
  const enter = ['--target', pid, '--mount', '--pid', '--net', '--cgroup', '--root', '--wd=/', ...command];
  return await run('nsenter', enter).then(
    ({ stdout }) => stdout.trim(),
    (error: { stdout?: string; stderr?: string }) => `${error.stdout ?? ''}${error.stderr ?? ''}`.trim(),
  );
}

/** The systemd: the only child of `unshare`. */
async function findInit(): Promise<string> {
  const path = `/proc/${machine.pid}/task/${machine.pid}/children`;
  return (await readFile(path, 'utf8')).trim();
}

const show = async (property: string) =>
  await inside('systemctl', 'show', 'spangate', '--property', property, '--value');
const curl = async (path: string) =>
  await inside('curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', `http://127.0.0.1:8080${path}`);

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  const startedMs = performance.now();
  while (!(await holds().catch(() => false))) {
    if (machine.hasExited)
      throw new Error(`systemd has ended: ${await readFile(join(folder.path, 'log'), 'utf8')}`);
    if (performance.now() - startedMs > WAIT_MS)
      throw new Error(`not within a minute: ${what}\n${await inside('systemctl', 'status', 'spangate')}`);
    await sleep(200);
  }
  console.log(`ok  ${what}`);
}

const ensure = (holds: boolean, what: string) => {
  if (!holds) throw new Error(`FAILED ${what}`);
  console.log(`ok  ${what}`);
};

const writeConfig = (config: object) =>
  inside('sh', '-c', 'printf %s "$1" >/etc/spangate/gateway.yaml', 'sh', JSON.stringify(config));

await until('systemd has booted', async () =>
  /running|degraded/.test(await inside('systemctl', 'is-system-running')),
);
await writeConfig(CONFIG);
await inside('sh', '-c', 'echo SVC_ADMIN_TOKEN=an-admin-token-for-the-lab >/etc/spangate/environment');
const simulate = ['/app/src/main.ts', 'simulate', '--port', '8000', '--gap', '100ms', '--tokens', '40'];
await inside('systemd-run', '--unit', 'replica', '/node', ...simulate);

await inside('systemctl', 'start', 'spangate');
await until('the unit serves', async () => (await curl('/healthz')) === '200');
const pid = await show('MainPID');
const status = await inside('cat', `/proc/${pid}/status`);
const uid = await inside('id', '-u', 'spangate');
ensure(status.includes(`Uid:\t${uid}\t${uid}`), `it runs as the user spangate (${uid})`);
ensure(
  /CapEff:\t0+\n/.test(status) && /NoNewPrivs:\t1/.test(status),
  'it has no capability, and can get none',
);
ensure(/Seccomp:\t2/.test(status), 'its system calls are filtered');
const state = await inside('ls', '-ld', '/var/lib/spangate');
ensure(/^drwx------.* spangate spangate /.test(state), 'its state belongs to it alone');
await until('the replica serves through it', async () => (await curl('/v1/models')) === '200');

await writeConfig({
  ...CONFIG,
  replicas: [...CONFIG.replicas, { name: 'b', url: 'http://127.0.0.1:8001', models: ['demo'] }],
});
await inside('systemctl', 'reload', 'spangate');
const replicas = () =>
  inside(
    'curl',
    '-s',
    '-H',
    'Authorization: Bearer an-admin-token-for-the-lab',
    'http://127.0.0.1:9090/admin/replicas',
  );
await until('a reload brings a second replica', async () => (await replicas()).includes('"name":"b"'));
ensure((await show('MainPID')) === pid, 'and the process is the same');

await inside('systemctl', 'kill', '--signal=SIGKILL', 'spangate');
await until(
  'after a SIGKILL it serves again',
  async () => (await show('MainPID')) !== pid && (await curl('/healthz')) === '200',
);

const body = JSON.stringify({ model: 'demo', stream: true, messages: [{ role: 'user', content: 'hello' }] });
const stream = inside(
  'curl',
  '-sN',
  '-H',
  'Content-Type: application/json',
  '-d',
  body,
  'http://127.0.0.1:8080/v1/chat/completions',
);
await sleep(1_000);
await inside('systemctl', 'stop', 'spangate');
ensure((await stream).endsWith('data: [DONE]'), 'a stop lets a stream of four seconds end');
ensure((await show('Result')) === 'success', 'and the result of the unit is success');

await writeConfig({ replicas: [] });
await inside('systemctl', 'start', 'spangate');
await until('a wrong configuration ends it for good', async () => (await show('ActiveState')) === 'failed');
ensure(
  (await show('ExecMainStatus')) === '2' && (await show('NRestarts')) === '0',
  'with code 2, without a restart',
);
