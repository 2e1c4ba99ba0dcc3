import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { CANARY } from '#testkit/canaries/canary.ts';
import { EventLog } from '#testkit/event-log.ts';
import { runMain, spawnMain, TOKEN, writeConfig } from '#testkit/processes/main-process.ts';
import { ROUTES } from '../../../src/admin/route-table.ts';
import { readFiles, readProcessListing } from './process-traces.ts';

/** What a gateway leaves or shows, by the place where somebody would look. Each has all pieces found there so far. */
export type Traces = Record<
  'exports' | 'files' | 'log' | 'stderr' | 'admin' | 'metrics' | 'commands' | 'redis' | 'process',
  string[]
>;

/** Nothing yet. */
export const noTraces = (): Traces => ({
  exports: [],
  files: [],
  log: [],
  stderr: [],
  admin: [],
  metrics: [],
  commands: [],
  redis: [],
  process: [],
});

/**
 * SIGUSR2 throws an error of which the text of a request is the message, a property, the cause, and lines that look like
 * stack frames: in a worker if there are any, and the next time in the main thread. The text stands nowhere in the script.
 */
const FAULTY = `
const text = ${JSON.stringify([...CANARY])}.join('');
const { isMainThread, BroadcastChannel } = process.getBuiltinModule('worker_threads');
const channel = new BroadcastChannel('end of a worker');
channel.unref();
function fail() {
  const error = new TypeError(text + '\\n    at ' + text + ' (a.ts:1:1)', { cause: new Error(text) });
  throw Object.assign(error, { body: text, [text]: Buffer.from(text) });
}
let count = 0;
if (isMainThread) process.on('SIGUSR2', () => (count++ === 0 && process.env.WORKERS === '2' ? channel.postMessage(1) : fail()));
else channel.onmessage = fail;
`;

/** A gateway in a process of its own, whose traces are collected. */
export interface WatchedGateway {
  readonly url: string;
  readonly child: ReturnType<typeof spawnMain>['child'];
  readonly stateDir: string;
  /** Resolves when the log has a line with this text. */
  untilLogged(part: string): Promise<void>;
  callAdmin(path: string, init?: RequestInit): Promise<string>;
  /** Makes every GET of the admin API. */
  readAdmin(): Promise<void>;
  /** Asks for everything that can be asked for, and reads all files. */
  collect(): Promise<void>;
  /** Replaces the configuration file. */
  writeConfig(write: (config: string) => string): Promise<void>;
  /** Resolves when the process has ended and its last traces are collected. */
  readonly ended: Promise<void>;
}

/**
 * Starts a gateway with these lines of configuration, and with files beside it. All that it leaves and shows goes into
 * `traces`. `preload`: JavaScript that runs in each thread before the gateway.
 */
export async function watchGateway(
  lines: string,
  workers: number,
  traces: Traces,
  files: Readonly<Record<string, string>> = {},
  preload = FAULTY,
): Promise<WatchedGateway> {
  const configPath = await writeConfig(lines, workers);
  const directory = dirname(configPath);
  for (const [name, content] of Object.entries(files)) await writeFile(join(directory, name), content);
  const env = { SVC_CONFIG: configPath, SVC_ADMIN_TOKEN: TOKEN, WORKERS: String(workers) };
  const { child, stdout, stderr, closed } = spawnMain([], { env, preload, cwd: directory });
  const log = new EventLog<string>();
  createInterface({ input: stdout }).on('line', (line) => {
    traces.log.push(line);
    log.push(line);
  });
  const said = text(stderr);
  const find = (part: string) => log.items.find((line) => line.includes(part));
  const untilLogged = (part: string) => log.until(() => find(part) !== undefined);
  await untilLogged('"msg":"serving"');
  const { listen, adminListen } = JSON.parse(find('"msg":"serving"') ?? '{}') as Record<string, string>;
  const adminUrl = `http://${adminListen}`;

  const callAdmin = async (path: string, init: RequestInit = {}) => {
    const headers = { authorization: `Bearer ${TOKEN}`, ...init.headers };
    const response = await fetch(adminUrl + path, { ...init, headers });
    const answer = JSON.stringify([...response.headers]) + (await response.text());
    traces[path === '/metrics' ? 'metrics' : 'admin'].push(answer);
    return answer;
  };
  const readAdmin = async () => {
    for (const { method, path } of ROUTES) {
      if (method === 'GET') await callAdmin(path.replace('{name}', 'a'));
    }
    await callAdmin('/admin/records?limit=500');
  };
  const readDirectory = async () => void traces.files.push(await readFiles(directory, ['gateway.yaml']));
  return {
    url: `http://${listen}`,
    child,
    stateDir: `${directory}/state`,
    untilLogged,
    callAdmin,
    readAdmin,
    async collect() {
      await readAdmin();
      await callAdmin('/metrics', { headers: { accept: 'application/openmetrics-text; version=1.0.0' } });
      await callAdmin(`/admin/replicas/${CANARY}?q=${CANARY}`, { headers: { 'x-a': CANARY } });
      await callAdmin(`/admin/replicas/${CANARY}/drain`, { method: 'POST', body: CANARY });
      await callAdmin('/admin/stats', { headers: { authorization: `Bearer ${CANARY}` } });
      const commands = [
        'replicas',
        'records --limit 500',
        'records --json --limit 500',
        'top --once',
        'stats',
      ];
      for (const command of [
        ...commands,
        'top --once --by tenant',
        'top --once --by model',
        'gateways',
        'check',
      ]) {
        const options = command === 'check' ? [] : ['--admin', adminUrl];
        const { stdout: out, stderr: err } = await runMain([...command.split(' '), ...options], { env });
        traces.commands.push(out, err);
      }
      traces.process.push(await readProcessListing(child.pid ?? 0));
      await readDirectory();
    },
    async writeConfig(write) {
      await writeFile(configPath, write(await readFile(configPath, 'utf8')));
    },
    ended: closed.then(async () => {
      traces.stderr.push(await said);
      await readDirectory();
    }),
  };
}
