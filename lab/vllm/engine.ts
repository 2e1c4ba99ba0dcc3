import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { type Server, startServer } from '#testkit/programs/child.ts';
import { USER_CACHE } from '#testkit/programs/user-cache.ts';

const INSTALLED_IN = join(USER_CACHE, 'vllm');
/** It loads half of Python's ecosystem first: 20 s on two cores that do nothing else. */
const READY_MS = 300_000;

/** Installs vLLM and its model unless they are installed: a few minutes, and 7 GB. */
export function installEngine(): void {
  if (existsSync(join(INSTALLED_IN, 'start'))) return;
  console.log(`installing vLLM into ${INSTALLED_IN}: a few minutes`);
  const { status } = spawnSync('bash', [join(import.meta.dirname, 'install.sh'), INSTALLED_IN], {
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the installation of vLLM failed');
}

/** How an engine is started. */
export interface EngineOptions {
  /** Where its log goes. */
  readonly logPath: string;
  /** Default: a free one. */
  readonly port?: number;
  /** Where it sends its spans, as OTLP over HTTP. */
  readonly tracesUrl?: string;
}

/** Starts a vLLM server, and waits until its model is loaded. It serves `tiny`. */
export async function startEngine({ logPath, port, tracesUrl }: EngineOptions): Promise<Server> {
  const at = port ?? (await findFreePort());
  const traces = tracesUrl === undefined ? [] : ['--otlp-traces-endpoint', `${tracesUrl}/v1/traces`];
  return await startServer(
    {
      file: join(INSTALLED_IN, 'start'),
      args: [String(at), ...traces],
      env: { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' },
    },
    { url: `http://127.0.0.1:${at}`, path: '/health', readyMs: READY_MS },
    { logPath },
  );
}

/** The engine's own counters, from GET /metrics. */
export interface EngineCounters {
  readonly generationTokens: number;
  readonly requests: number;
}

/** Reads the counters when the engine has had nothing to do for a moment. */
export async function readWhenIdle(engineUrl: string): Promise<EngineCounters> {
  for (;;) {
    const before = await readMetrics(engineUrl);
    await sleep(200);
    const after = await readMetrics(engineUrl);
    const isIdle = after.requests === 0 && after.generationTokens === before.generationTokens;
    if (isIdle) return after;
  }
}

async function readMetrics(engineUrl: string): Promise<EngineCounters> {
  const text = await (await fetch(`${engineUrl}/metrics`)).text();
  const counterOf = (name: string) =>
    Number(new RegExp(`^vllm:${name}\\{.*?\\} (\\S+)`, 'm').exec(text)?.[1]);
  return {
    generationTokens: counterOf('generation_tokens_total'),
    requests: counterOf('num_requests_running') + counterOf('num_requests_waiting'),
  };
}
