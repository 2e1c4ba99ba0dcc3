import { execFile, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, watch } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import type { TestContext } from 'vitest';
import { EventLog } from '../event-log.ts';
import { type CollectedSpan, isNotOfCondition, readSpans } from '../fake-collector.ts';
import { findFreePort } from '../processes/free-port.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const BUILD = join(ROOT, 'scripts/otelcol/build.sh');

/** A test that needs the collector may have to build it first. */
export const WITH_COLLECTOR = { timeout: 15 * 60_000 };

/** The configuration that users get: what is tested is this, with other addresses and a faster clock. */
export const SHIPPED_CONFIG = join(ROOT, 'collector-config.yaml');

/**
 * The path of the collector's binary, built if there is none yet. Without Go the test is skipped, with the
 * reason; in CI that is a failure.
 */
export async function requireCollector(
  context: TestContext,
  manifest: 'manifest.yaml' | 'manifest-jsonfile.yaml' = 'manifest.yaml',
): Promise<string> {
  const path = execFileSync(BUILD, ['--path', manifest], { encoding: 'utf8' }).trim();
  if (existsSync(path)) return path;
  const hasGo = await run('go', ['version']).then(
    () => true,
    () => false,
  );
  if (hasGo) {
    const { stdout } = await run(BUILD, [manifest]);
    return stdout.trim();
  }
  const reason = 'needs Go to build an OpenTelemetry Collector (scripts/otelcol/build.sh)';
  if (process.env.CI === 'true') throw new Error(reason);
  // vitest's own reporters show why a test was skipped only when told to show every test.
  console.warn(`skipped: ${context.task.name}: ${reason}`);
  context.skip(reason);
}

export interface RealCollector extends AsyncDisposable {
  /** The base address, for `export.endpoint`; it stays the same over restarts. */
  readonly url: string;
  /** Where the shipped configuration writes all records. */
  readonly recordsFile: string;
  /** The spans that Jaeger would get: redacted, and sampled as with SAMPLE_PERCENT=10. */
  sampled(): Promise<readonly CollectedSpan[]>;
  /** The spans that it has written to its file until now. */
  spans(): Promise<readonly CollectedSpan[]>;
  /**
   * The spans as soon as at least so many differ; asked again each time the file has changed. By default all but those of
   * conditions, which are about what happens around the requests, at times that no test decides.
   */
  untilSpans(count: number, isMeant?: (span: CollectedSpan) => boolean): Promise<readonly CollectedSpan[]>;
  /**
   * The text of GET /metrics as soon as the predicate holds; asked again each time metrics have come. `accept`: the media
   * type to ask for, by default that of the text format.
   */
  untilMetrics(isWanted: (text: string) => boolean, accept?: string): Promise<string>;
  /** SIGTERM; resolves when the process has ended. */
  stop(): Promise<void>;
  /** Starts it again, with the same address and file. Rejects with its output if it does not start. */
  start(): Promise<void>;
}

/** Starts a collector on free ports. */
export async function startRealCollector(binary: string): Promise<RealCollector> {
  const folder = await mkdtemp(join(tmpdir(), 'spangate-collector-'));
  const overlay = join(folder, 'overlay.yaml');
  const file = join(folder, 'all.jsonl');
  const recordsFile = join(folder, 'records.jsonl');
  const sampledFile = join(folder, 'sampled.jsonl');
  const metricsPort = await findFreePort();
  let otlpPort = 0;
  let stopRunning: (() => Promise<void>) | undefined;
  const lines = new EventLog<string>();

  const start = async () => {
    await writeFile(
      overlay,
      JSON.stringify(toOverlay({ otlpPort, metricsPort, file, recordsFile, sampledFile })),
    );
    const started = await startProcess(binary, overlay, lines);
    stopRunning = started.stop;
    otlpPort = started.otlpPort;
  };
  const stop = async () => {
    await stopRunning?.();
    stopRunning = undefined;
  };
  // The collector only appends to its file: what was parsed once is kept.
  const parsed: CollectedSpan[] = [];
  let parsedChars = 0;
  const spans = async () => {
    const text = await readFile(file, 'utf8').catch(() => '');
    const end = text.lastIndexOf('\n') + 1;
    parsed.push(...text.slice(parsedChars, end).split('\n').filter(Boolean).flatMap(readSpans));
    parsedChars = Math.max(parsedChars, end);
    return [...parsed];
  };

  await start();
  return {
    url: `http://127.0.0.1:${otlpPort}`,
    recordsFile,
    async sampled() {
      const text = await readFile(sampledFile, 'utf8').catch(() => '');
      return text
        .slice(0, text.lastIndexOf('\n') + 1)
        .split('\n')
        .filter(Boolean)
        .flatMap(readSpans);
    },
    spans,
    async untilSpans(count, isMeant = isNotOfCondition) {
      const watching = new AbortController();
      const changes = new EventLog<string>();
      const watcher = watch(folder, { signal: watching.signal }, (event) => changes.push(event));
      try {
        for (;;) {
          const seen = changes.items.length;
          const found = (await spans()).filter(isMeant);
          if (new Set(found.map(({ spanId }) => spanId)).size >= count) return found;
          await changes.count(seen + 1);
        }
      } finally {
        watching.abort();
        watcher.close();
      }
    },
    async untilMetrics(isWanted, accept = 'text/plain') {
      for (;;) {
        const seen = lines.items.length;
        const text = await (
          await fetch(`http://127.0.0.1:${metricsPort}/metrics`, { headers: { accept } })
        ).text();
        if (isWanted(text)) return text;
        await lines.until(() => lines.items.slice(seen).some((line) => line.includes('"data points"')));
      }
    },
    stop,
    start,
    [Symbol.asyncDispose]: async () => {
      await stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** The places of one test. */
interface Places {
  readonly otlpPort: number;
  readonly metricsPort: number;
  /** All spans. */
  readonly file: string;
  readonly recordsFile: string;
  readonly sampledFile: string;
}

/** Laid over the shipped configuration: places of this test, a file instead of Jaeger, decisions and metrics in no time. */
function toOverlay(place: Places): object {
  return {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${place.otlpPort}` } } } },
    processors: { batch: { timeout: '50ms' }, tail_sampling: { decision_wait: '200ms' } },
    connectors: { span_metrics: { metrics_flush_interval: '100ms' } },
    exporters: {
      // OpenMetrics, which has exemplars, is for those who ask for it.
      prometheus: { endpoint: `127.0.0.1:${place.metricsPort}`, enable_open_metrics: true },
      file: { path: place.recordsFile },
      'file/all': { path: place.file },
      'file/sampled': { path: place.sampledFile },
    },
    extensions: { health_check: { endpoint: '127.0.0.1:0' } },
    service: {
      telemetry: { metrics: { level: 'none' } },
      pipelines: {
        traces: { exporters: ['file/sampled'] },
        'traces/all': { receivers: ['otlp'], processors: ['batch'], exporters: ['file/all'] },
        // The debug exporter writes one line whenever metrics have come: the event to wait for.
        'metrics/from-records': { exporters: ['prometheus', 'debug'] },
        metrics: { exporters: ['prometheus', 'debug'] },
      },
    },
  };
}

/** Runs a collector with a configuration of its own until it is disposed of. Rejects if it does not start. */
export async function runCollector(binary: string, config: object): Promise<AsyncDisposable> {
  const folder = await mkdtemp(join(tmpdir(), 'spangate-collector-'));
  const path = join(folder, 'config.yaml');
  await writeFile(path, JSON.stringify(config));
  const running = await spawnCollector(binary, [path], new EventLog<string>());
  return {
    [Symbol.asyncDispose]: async () => {
      await running.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function startProcess(
  binary: string,
  overlay: string,
  lines: EventLog<string>,
): Promise<{ readonly otlpPort: number; readonly stop: () => Promise<void> }> {
  const { said, stop } = await spawnCollector(binary, [SHIPPED_CONFIG, overlay], lines);
  const [, port] =
    said.map((line) => /Starting HTTP server.*"endpoint": "127\.0\.0\.1:(\d+)"/.exec(line)).find(Boolean) ??
    [];
  if (port === undefined) throw new Error(`the collector tells no port:\n${said.join('\n')}`);
  return { otlpPort: Number(port), stop };
}

/** Resolves once the collector says that it is ready, with what it said until then. */
async function spawnCollector(
  binary: string,
  configs: readonly string[],
  lines: EventLog<string>,
): Promise<{ readonly said: readonly string[]; readonly stop: () => Promise<void> }> {
  const args = configs.flatMap((path) => ['--config', path]);
  const env = { ...process.env, SAMPLE_PERCENT: '10' };
  const child = spawn(binary, args, { stdio: ['ignore', 'ignore', 'pipe'], env });
  const exited = once(child, 'exit');
  const first = lines.items.length;
  let hasExited = false;
  void exited.then(() => {
    hasExited = true;
    lines.wake();
  });
  createInterface({ input: child.stderr }).on('line', (line) => lines.push(line));
  const own = () => lines.items.slice(first);
  await lines.until(() => hasExited || own().some((line) => line.includes('Everything is ready')));
  if (hasExited) throw new Error(`the collector did not start:\n${own().join('\n')}`);
  return {
    said: own(),
    stop: async () => {
      child.kill('SIGTERM');
      await exited;
    },
  };
}
