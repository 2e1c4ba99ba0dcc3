import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { decodeRecord } from '#otel/otlp';
import { EventLog } from '../event-log.ts';
import { type FakeReplica, startFakeReplica } from '../fake-replica.ts';
import { quickStart } from './quick-start.ts';
import { temporaryFolder } from './temporary-folder.ts';

const MAIN = fileURLToPath(new URL('../../src/main.ts', import.meta.url));
/** The token of the admin API. */
export const TOKEN = 'token-1';

/** How to start a process. */
export interface SpawnOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** JavaScript that runs in the process before the gateway. */
  readonly preload?: string;
  /** Options of Node. */
  readonly nodeArgs?: readonly string[];
  readonly cwd?: string;
  /** How many files the process may open. */
  readonly maxFiles?: number;
}

/** Starts the real command in a process of its own. `env` is its whole environment, but for the compile cache. */
export function spawnMain(
  args: readonly string[],
  { env = {}, preload = '', nodeArgs = [], cwd, maxFiles }: SpawnOptions = {},
) {
  const imports = preload === '' ? [] : ['--import', `data:text/javascript,${encodeURIComponent(preload)}`];
  const command = [process.execPath, ...nodeArgs, ...imports, MAIN, ...args];
  // The shell sets the limit, and becomes the process.
  const limited = maxFiles === undefined ? [] : ['bash', '-c', `ulimit -n ${maxFiles}; exec "$@"`, 'bash'];
  const [file = '', ...words] = [...limited, ...command];
  const child = spawn(file, words, {
    env: { ...quickStart(), ...env },
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  return { child, stdout: child.stdout, stderr: child.stderr, closed };
}

/** Runs the command until it ends. */
export async function runMain(args: readonly string[], options?: SpawnOptions) {
  const { stdout, stderr, closed } = spawnMain(args, options);
  const [out, err, { code }] = await Promise.all([text(stdout), text(stderr), closed]);
  return { code, stdout: out, stderr: err };
}

/** A gateway in a process of its own. */
export interface Serving {
  readonly child: ChildProcess;
  readonly url: string;
  readonly adminUrl: string;
  readonly configPath: string;
  /** Resolves with the oldest log line that has this message and is meant. */
  untilLogged(
    msg: string,
    isMeant?: (line: Record<string, unknown>) => boolean,
  ): Promise<Record<string, unknown>>;
  readonly closed: Promise<{ code: number | null; signal: string | null }>;
  readonly stderr: Promise<string>;
}

/** Writes a configuration file with free ports into a new directory. */
export async function writeConfig(lines: string, workers = 1): Promise<string> {
  const directory = await temporaryFolder();
  const path = join(directory, 'gateway.yaml');
  const gateway = `{ listen: "127.0.0.1:0", admin_listen: "127.0.0.1:0", workers: ${workers} }`;
  await writeFile(path, `gateway: ${gateway}\n${lines}`);
  return path;
}

/** Starts a gateway in front of one replica; without a collector it exports to a file. */
export async function serve(
  replica: Pick<FakeReplica, 'url'>,
  {
    workers = 1,
    collector,
    ...options
  }: SpawnOptions & { readonly workers?: number; readonly collector?: { readonly url: string } } = {},
): Promise<Serving> {
  const exporting = collector === undefined ? '{ to: file }' : `{ endpoint: "${collector.url}" }`;
  const path = await writeConfig(
    `replicas: [{ name: a, url: "${replica.url}", models: [m], engine: openai }]
export: ${exporting}
shutdown: { flush: 0s }
metrics: { otlp: false }
`,
    workers,
  );
  const env = { SVC_CONFIG: path, SVC_ADMIN_TOKEN: TOKEN, ...options.env };
  const { child, stdout, stderr, closed } = spawnMain([], { ...options, env });
  const log = new EventLog<Record<string, unknown>>();
  createInterface({ input: stdout }).on('line', (line) => log.push(JSON.parse(line)));
  const untilLogged: Serving['untilLogged'] = async (msg, isMeant = () => true) => {
    const find = () => log.items.find((line) => line.msg === msg && isMeant(line));
    await log.until(() => find() !== undefined);
    return find() ?? {};
  };
  const { listen, adminListen } = await untilLogged('serving');
  const urls = { url: `http://${listen}`, adminUrl: `http://${adminListen}` };
  return { child, ...urls, configPath: path, untilLogged, closed, stderr: text(stderr) };
}

/** Sends a chat completion. */
export const chat = (url: string) =>
  fetch(`${url}/v1/chat/completions`, { method: 'POST', body: '{"model":"m","messages":[]}' });

/** A collector that is not there: records can only be stored. */
export const AWAY = { url: 'http://127.0.0.1:9' };

/** Starts a replica that is closed when the test has finished. */
export async function startReplica(): Promise<FakeReplica> {
  const replica = await startFakeReplica();
  onTestFinished(() => replica.close());
  return replica;
}

/** The error types of the records in the spool of a gateway that has ended, oldest first. */
export async function spooledEndings({ configPath }: Serving): Promise<readonly unknown[]> {
  const directory = join(dirname(configPath), 'state', 'spool');
  const files = await Promise.all(
    (await readdir(directory)).map((name) => readFile(join(directory, name), 'utf8')),
  );
  const lines = files.flatMap((file) => file.trimEnd().split('\n'));
  return lines
    .map((line) => decodeRecord(Buffer.from(line.slice('12345678 '.length), 'base64')))
    .map((record) => record?.error_type);
}
