import { createServer, type IncomingMessage } from 'node:http';
import { onTestFinished } from 'vitest';
import { closeServer, listen } from '#testkit/servers/local-server.ts';

/** An answer of the scripted API; `null` closes the connection instead. */
export type ScriptedAnswer = { readonly status?: number; readonly body: unknown } | null;

/** The environment of a command line that may call it. */
export const TOKEN = { SVC_ADMIN_TOKEN: 'token-1' };

/** A replica as the admin API shows it. */
export const REPLICA = {
  name: 'vllm-a',
  url: 'http://10.0.0.11:8000',
  host: 'gpu-node-1',
  gpu_model: 'H100',
  gpu_count: 8,
  drained: false,
  inflight: 3,
  background: 0,
  models: ['llama', 'qwen'],
  engine: 'vllm',
  reachability: 'reachable',
  reachability_since: '2026-01-01T11:00:00.000Z' as string | null,
  reachability_reason: null as string | null,
  since: null as string | null,
  reason: null as string | null,
  safe_to_stop: false as boolean | null,
};

/** Starts a scripted admin API on a free port. `calls` lists the requests. */
export async function startAdmin(answer: (request: IncomingMessage) => ScriptedAnswer) {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    calls.push(`${request.method} ${request.url} ${request.headers.authorization}`);
    const given = answer(request);
    if (given === null) {
      request.socket.destroy();
      return;
    }
    const { status = 200, body } = given;
    response.writeHead(status, { 'content-type': 'application/json', location: '/elsewhere' });
    response.end(typeof body === 'string' ? body : JSON.stringify(body));
  });
  const port = await listen(server);
  onTestFinished(() => closeServer(server));
  return { url: `http://127.0.0.1:${port}`, port, calls };
}
