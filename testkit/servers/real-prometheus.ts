import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import type { TestContext } from 'vitest';
import { parse } from 'yaml';
import { EventLog } from '../event-log.ts';
import { findFreePort } from '../processes/free-port.ts';

const run = promisify(execFile);

/** The configuration that users get: what is tested is this, with other addresses and a faster clock. */
export const SHIPPED_PROMETHEUS_CONFIG = join(import.meta.dirname, '../../deploy/prometheus/prometheus.yml');

/** The rules that users get. */
const SHIPPED_ALERTS = join(import.meta.dirname, '../../deploy/alerts.yaml');

/** Skips the test if Prometheus is not installed, with the reason; in CI that is a failure. */
export async function requirePrometheus(context: TestContext): Promise<void> {
  const isThere = await run('prometheus', ['--version']).then(
    () => true,
    () => false,
  );
  if (isThere) return;
  const reason = 'needs Prometheus (package prometheus of Debian)';
  if (process.env.CI === 'true') throw new Error(reason);
  console.warn(`skipped: ${context.task.name}: ${reason}`);
  context.skip(reason);
}

/** What promtool says of a text on its standard input; rejects if it finds anything. */
export async function promtool(args: readonly string[], input = ''): Promise<string> {
  const running = run('promtool', args);
  running.child.stdin?.end(input);
  const { stdout, stderr } = await running;
  return stdout + stderr;
}

/** One series of an answer, and its value now. */
export interface Sample {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [number, string];
}

/** A Prometheus that scrapes one gateway with the shipped configuration. */
export interface RealPrometheus extends AsyncDisposable {
  /** The result of an instant query that gives a vector. Rejects with Prometheus' own words if it is no query. */
  query(promql: string): Promise<readonly Sample[]>;
  /** The exemplars of the last hour. */
  queryExemplars(promql: string): Promise<readonly StoredExemplar[]>;
}

/** An exemplar with the labels of its series. */
export interface StoredExemplar {
  readonly seriesLabels: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
}

/** Starts it on a free port. `target` is host and port of what it scrapes, ten times a second. */
export async function startPrometheus(target: string, readToken: string): Promise<RealPrometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'spangate-prometheus-'));
  const config = join(folder, 'prometheus.json');
  const tokenFile = join(folder, 'read-token');
  await writeFile(tokenFile, `${readToken}\n`, { mode: 0o600 });
  await writeFile(config, JSON.stringify(await toTestConfig(target, tokenFile)));
  const port = await findFreePort();
  const child = spawn(
    'prometheus',
    [
      `--config.file=${config}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
      '--enable-feature=exemplar-storage',
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const exited = once(child, 'exit');
  const lines = new EventLog<string>();
  let hasExited = false;
  void exited.then(() => {
    hasExited = true;
    lines.wake();
  });
  createInterface({ input: child.stderr }).on('line', (line) => lines.push(line));
  await lines.until(() => hasExited || lines.items.some((line) => line.includes('Server is ready')));
  if (hasExited) throw new Error(`Prometheus did not start:\n${lines.items.join('\n')}`);
  async function ask<Data>(path: string, parameters: Readonly<Record<string, string>>): Promise<Data> {
    const address = `http://127.0.0.1:${port}/api/v1/${path}?${new URLSearchParams(parameters)}`;
    const answer = (await (await fetch(address)).json()) as QueryAnswer<Data>;
    if (answer.status !== 'success') throw new Error(`${answer.error}: ${parameters.query}`);
    return answer.data;
  }
  return {
    query: async (promql) => (await ask<{ result: readonly Sample[] }>('query', { query: promql })).result,
    async queryExemplars(promql) {
      const nowSeconds = Date.now() / 1000;
      const [start, end] = [String(nowSeconds - 3600), String(nowSeconds + 60)];
      const series = await ask<readonly SeriesExemplars[]>('query_exemplars', { query: promql, start, end });
      return series.flatMap(({ seriesLabels, exemplars }) =>
        exemplars.map((exemplar) => ({ seriesLabels, ...exemplar })),
      );
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

type QueryAnswer<Data> =
  | { readonly status: 'success'; readonly data: Data }
  | { readonly status: 'error'; readonly error: string };

interface SeriesExemplars {
  readonly seriesLabels: StoredExemplar['seriesLabels'];
  readonly exemplars: readonly Omit<StoredExemplar, 'seriesLabels'>[];
}

interface ShippedConfig {
  readonly global: object;
  readonly scrape_configs: readonly { readonly job_name: string; readonly authorization?: object }[];
}

async function toTestConfig(target: string, tokenFile: string): Promise<object> {
  const shipped: ShippedConfig = parse(await readFile(SHIPPED_PROMETHEUS_CONFIG, 'utf8'));
  const job = shipped.scrape_configs.find(({ job_name }) => job_name === 'spangate');
  return {
    ...shipped,
    rule_files: [SHIPPED_ALERTS],
    global: { ...shipped.global, scrape_interval: '100ms', scrape_timeout: '100ms' },
    scrape_configs: [
      {
        ...job,
        authorization: { ...job?.authorization, credentials_file: tokenFile },
        static_configs: [{ targets: [target] }],
      },
    ],
  };
}
