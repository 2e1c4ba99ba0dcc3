import { once } from 'node:events';
import { createServer } from 'node:http';
import { Load } from '#testkit/load/load.ts';
import type { Server } from '#testkit/programs/child.ts';
import type { GatewayProcess } from '#testkit/programs/gateway-process.ts';
import { readRolloutLines, startRollout } from '#testkit/programs/rollout-command.ts';
import { listen } from '#testkit/servers/local-server.ts';
import type { Report } from '../llama/report.ts';
import { startEngine } from './engine.ts';

const REQUESTS_PER_SECOND = 4;
/** On a machine that is too slow for the rate they would pile up. */
const MAX_OPEN = 16;
/** How long an engine may take to stop and to start. */
const RESTART_SECONDS = 300;

const MESSAGES = [{ role: 'user', content: 'Tell me something about the sea.' }];
/** Chats and completions, streamed and not. */
const REQUESTS = [
  { path: '/v1/chat/completions', body: { messages: MESSAGES, stream: true } },
  { path: '/v1/chat/completions', body: { messages: MESSAGES } },
  { path: '/v1/completions', body: { prompt: 'The sea is', stream: true } },
].map(({ path, body }, index) => ({
  path,
  json: JSON.stringify({ model: 'tiny', max_tokens: 16 << index, ...body }),
}));
const toRequest = (index: number) => REQUESTS[index % REQUESTS.length] ?? { path: '/', json: '' };

/** What clients sent while engines were restarted. */
export interface RestartResult {
  readonly requests: number;
  readonly failed: number;
}

/** Restarts each engine with `gateway rollout` while clients send chats and completions: no request fails. */
export async function checkRestart(
  gateway: GatewayProcess,
  engines: Map<string, Server>,
  { folder, logPath }: { readonly folder: string; readonly logPath: string },
  report: Report,
): Promise<RestartResult> {
  report.section('Engines are restarted one after the other by `gateway rollout`');
  const restarted: string[] = [];
  const restart = async (name: string) => {
    const engine = engines.get(name);
    if (engine === undefined) throw new Error(`no engine ${name}`);
    await engine[Symbol.asyncDispose]();
    engines.set(name, await startEngine({ logPath, port: Number(new URL(engine.url).port) }));
    restarted.push(name);
  };
  const server = createServer((request, response) => {
    restart(request.url?.slice(1) ?? '').then(
      () => response.writeHead(204).end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  const command = `curl -fsS -X POST --max-time ${RESTART_SECONDS} http://127.0.0.1:${await listen(server)}/{name}`;
  const options = ['--ramp', '2s', '--verdict', 'off', '--restart-timeout', `${RESTART_SECONDS}s`];
  await using rollout = startRollout({
    folder,
    adminUrls: [gateway.adminUrl],
    args: [...engines.keys(), ...options, '--exec', command],
  });
  const load = new Load(gateway.url, REQUESTS_PER_SECOND, undefined, MAX_OPEN, toRequest);
  for await (const { replica, text } of readRolloutLines(rollout)) report.note(`${replica} ${text}`);
  const exitCode = await rollout.exited;
  const { requests, failures } = await load.stop();
  server.close();
  await once(server, 'close');
  for (const failure of failures) report.note(failure);
  report.same('exit code', exitCode, 0);
  report.same('restarted', restarted, [...engines.keys()]);
  report.same(`of ${requests} requests failed`, failures.length, 0);
  return { requests, failed: failures.length };
}
