import { createServer } from 'node:http';
import { createSimulatedReplica } from '#simulate';
import { closeServer, listen } from '#testkit/servers/local-server.ts';

/** What the successor of a restarted engine is like. */
export type Successor = 'equal' | 'slower' | 'failing' | 'frozen' | 'absent';

/** Four simulated engines, of which a restarted one is what the lab wants. */
export interface ChangingEngines extends AsyncDisposable {
  readonly replicas: readonly { readonly name: string; readonly url: string }[];
  /** A POST to this URL with a replica's name appended restarts the engine. */
  readonly restartUrl: string;
  /** Ends all frozen engines, and with them the requests that they hold. Resolves with the number of those. */
  endFrozen(): Promise<number>;
}

interface Engine {
  readonly port: number;
  /** The requests that a frozen engine holds; null for one that is not frozen. */
  readonly held: ReadonlySet<object> | null;
  close(): Promise<void>;
}

const NAMES = ['vllm-0', 'vllm-1', 'vllm-2', 'vllm-3'];

/** Slow enough for a difference of 20 % to be above the noise of one process on a machine that others use too. */
const SPEED = { ttftMs: 300, gapMs: 100, tokens: 3 } as const;
const SLOWNESS = 1.2;
const ERROR_RATE = 0.05;

/** Starts the engines. */
export async function startChangingEngines(successor: Successor): Promise<ChangingEngines> {
  const engines = new Map<string, Engine>();
  for (const name of NAMES) engines.set(name, await startEngine(name, 0, 'equal'));
  const restart = async (name: string) => {
    const before = engines.get(name);
    if (before === undefined) throw new Error(`no engine ${name}`);
    await before.close();
    if (successor !== 'absent') engines.set(name, await startEngine(name, before.port, successor));
  };
  const server = createServer((request, response) => {
    restart(request.url?.slice(1) ?? '').then(
      () => response.writeHead(204).end(),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  const port = await listen(server);
  return {
    replicas: NAMES.map((name) => ({ name, url: `http://127.0.0.1:${engines.get(name)?.port}` })),
    restartUrl: `http://127.0.0.1:${port}/`,
    async endFrozen() {
      const frozen = [...engines.values()].filter(({ held }) => held !== null);
      const heldCount = frozen.reduce((sum, { held }) => sum + (held?.size ?? 0), 0);
      await Promise.all(frozen.map((each) => each.close()));
      return heldCount;
    },
    [Symbol.asyncDispose]: async () => {
      await closeServer(server);
      await Promise.all([...engines.values()].map((engine) => engine.close()));
    },
  };
}

async function startEngine(name: string, port: number, kind: Exclude<Successor, 'absent'>): Promise<Engine> {
  if (kind === 'frozen') return await startFrozen(port);
  const factor = kind === 'slower' ? SLOWNESS : 1;
  const replica = createSimulatedReplica({
    name,
    port,
    host: '127.0.0.1',
    models: ['m'],
    tokens: SPEED.tokens,
    ttftMs: factor * SPEED.ttftMs,
    gapMs: factor * SPEED.gapMs,
    ...(kind === 'failing' ? { errorRate: ERROR_RATE } : {}),
  });
  const { url } = await replica.start();
  return { port: Number(new URL(url).port), held: null, close: () => replica.close() };
}

/** An engine that lists its models, takes every request, begins its stream, and says nothing more. */
async function startFrozen(port: number): Promise<Engine> {
  const held = new Set<object>();
  const server = createServer((request, response) => {
    response.on('error', () => undefined);
    if (request.method === 'GET') {
      const list = { object: 'list', data: [{ id: 'm', object: 'model', owned_by: 'vllm' }] };
      response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(list));
    } else {
      request.resume();
      held.add(response.once('close', () => held.delete(response)));
      response.writeHead(200, { 'Content-Type': 'text/event-stream' }).flushHeaders();
    }
  });
  await listen(server, port);
  return { port, held, close: () => closeServer(server) };
}
