import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type FakeReplica, startFakeReplica } from '#testkit/fake-replica.ts';
import { type RedisLink, type RedisServer, startRedisServer } from '#testkit/servers/redis-server.ts';
import { type StartedGateway, type StartGatewayOptions, startGateway } from '#testkit/start-gateway.ts';

/** A replica as a gateway of a fleet shows it. */
export interface FleetReplicaJson {
  readonly name: string;
  readonly drained: boolean;
  readonly inflight: number;
  readonly safe_to_stop: boolean | null;
  readonly unconfirmed: readonly string[];
}

/** The answer to a drain or an undrain in a fleet. */
export interface FleetDrainResponse {
  readonly replica: FleetReplicaJson;
  readonly scope: 'fleet' | 'local';
  readonly overtaken: boolean;
  readonly unconfirmed: readonly string[];
  readonly warning?: string;
}

/** A gateway as GET /admin/gateways lists it. */
export interface GatewayJson {
  readonly name: string;
  readonly self: boolean;
  readonly alive: boolean;
  readonly inflight: number | null;
}

/** One gateway of a fleet, and its own link to the store. */
export interface FleetGateway {
  readonly name: string;
  readonly link: RedisLink;
  readonly gateway: StartedGateway;
  replica(name: string): Promise<FleetReplicaJson>;
  gateways(): Promise<readonly GatewayJson[]>;
  post(path: string): Promise<Response>;
  drain(replica: string, query?: string): Promise<FleetDrainResponse>;
  undrain(replica: string, query?: string): Promise<FleetDrainResponse>;
  /** Polls until the replica meets the condition, and resolves with it. */
  until(replica: string, isMet: (answer: FleetReplicaJson) => boolean): Promise<FleetReplicaJson>;
}

/** Sends this number of chat requests to a gateway, one after another. */
export async function chatTo({ gateway }: FleetGateway, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent++) await (await gateway.chat()).arrayBuffer();
}

/** Gateways in this process, replicas `x` and `y` behind them, and a real Redis server between them. */
export interface TestFleet extends AsyncDisposable {
  readonly redis: RedisServer;
  readonly replicas: { readonly x: FakeReplica; readonly y: FakeReplica };
  /** Starts a gateway. Its state_dir depends on the name and survives restarts. */
  start(
    name: string,
    gatewayKeys?: { readonly workers?: number },
    sections?: NonNullable<StartGatewayOptions['config']>,
  ): Promise<FleetGateway>;
}

const LOOK_EVERY_MS = 50;

/** Starts the store, the replicas and these gateways. */
export async function startFleet<const Names extends readonly string[]>(
  ...names: Names
): Promise<TestFleet & { readonly gateways: { readonly [K in keyof Names]: FleetGateway } }> {
  const parts = new AsyncDisposableStack();
  // Until the fleet is complete, nobody else disposes of its parts.
  await using incomplete = new AsyncDisposableStack();
  incomplete.use(parts);
  const folder = await mkdtemp(join(tmpdir(), 'spangate-fleet-'));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const redis = parts.use(await startRedisServer());
  const x = parts.use(await startFakeReplica({ name: 'x' }));
  const y = parts.use(await startFakeReplica({ name: 'y' }));
  const start: TestFleet['start'] = async (name, gatewayKeys = {}, sections = {}) => {
    const link = await redis.openLink();
    const gateway = await startGateway({
      replicas: [x, y],
      stateDir: join(folder, name),
      config: { gateway: { name, ...gatewayKeys }, state: { redis: link.url }, ...sections },
    });
    parts.use(gateway);
    return toFleetGateway(name, link, gateway);
  };
  const gateways = await Promise.all(names.map((name) => start(name)));
  incomplete.move();
  return {
    redis,
    replicas: { x, y },
    start,
    gateways: gateways as { readonly [K in keyof Names]: FleetGateway },
    [Symbol.asyncDispose]: () => parts.disposeAsync(),
  };
}

function toFleetGateway(name: string, link: RedisLink, gateway: StartedGateway): FleetGateway {
  const post = (path: string) => gateway.admin(path, { method: 'POST' });
  const replica = async (wanted: string) => {
    const replicas = (await gateway.replicas()) as unknown as readonly FleetReplicaJson[];
    const found = replicas.find((each) => each.name === wanted);
    if (found === undefined) throw new Error(`no replica ${wanted}`);
    return found;
  };
  const change = async (wanted: string, action: string) =>
    (await (await post(`/admin/replicas/${wanted}/${action}`)).json()) as FleetDrainResponse;
  return {
    name,
    link,
    gateway,
    replica,
    post,
    gateways: async () =>
      ((await (await gateway.admin('/admin/gateways')).json()) as { gateways: GatewayJson[] }).gateways,
    drain: (wanted, query = '') => change(wanted, `drain${query}`),
    undrain: (wanted, query = '') => change(wanted, `undrain${query}`),
    async until(wanted, isMet) {
      for (;;) {
        const answer = await replica(wanted);
        if (isMet(answer)) return answer;
        await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
      }
    },
  };
}
