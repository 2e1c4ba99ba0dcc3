import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { exchangeRaw, RawConnection } from '#testkit/raw-http.ts';
import { type Attack, CHAT } from './attack.ts';
import { type Cost, type MeasuredGateway, startMeasuredGateway } from './measured-gateway.ts';
import { type RawReplica, startRawReplica } from './raw-replica.ts';

/** What came of an attack. */
export interface Outcome extends Cost {
  readonly statuses: readonly number[];
  /** Whether the last answer was whole; false if there was none. */
  readonly isComplete: boolean;
  /** Whether the gateway closed the connection without another byte; true if the attack did not wait for it. */
  readonly hasClosed: boolean;
  /** The request lines that the replica saw. */
  readonly seen: readonly string[];
  /** The status of a sound request on a fresh connection afterwards. */
  readonly nextStatus: number;
}

/** A gateway in a process of its own, in front of a replica that does what an attack says. */
export interface AttackedGateway extends AsyncDisposable {
  run(attack: Attack): Promise<Outcome>;
}

/** Starts it, with short time-outs. `tls`: how it connects to the replica. */
export async function startAttackedGateway(
  startReplica: () => Promise<RawReplica> = startRawReplica,
  tls: object | null = null,
): Promise<AttackedGateway> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'spangate-attacks-')));
  const replica = stack.use(await startReplica());
  const gateway = stack.use(await startMeasuredGateway(toConfig(replica.url, { tls }), folder.path));
  await exchangeRaw(`http://${gateway.listen}`, CHAT);
  const started = stack.move();
  return {
    run: (attack) => run(attack, gateway, replica),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

async function run(attack: Attack, gateway: MeasuredGateway, replica: RawReplica): Promise<Outcome> {
  const { result, ...cost } = await gateway.measure(() =>
    attackOnce(attack, `http://${gateway.listen}`, replica),
  );
  return { ...result, ...cost };
}

async function attackOnce(
  attack: Attack,
  url: string,
  replica: RawReplica,
): Promise<Omit<Outcome, keyof Cost>> {
  replica.seen.length = 0;
  replica.actOnce(attack);
  using client = await RawConnection.open(url);
  if (attack.act === undefined) client.write(attack.bytes ?? CHAT);
  else await attack.act(client, replica);
  const statuses: number[] = [];
  let isComplete = true;
  for (let count = 0; count < attack.statuses.length; count++) {
    const response = await client.readResponse();
    statuses.push(response.status);
    isComplete = response.isComplete && response.status !== 0;
  }
  const hasClosed = attack.closes === false || (await client.readToClose()).length === 0;
  replica.actOnce({});
  const seen = [...replica.seen];
  const next = await exchangeRaw(url, CHAT);
  // The replica has seen this one, and nothing in between.
  const later = replica.seen.slice(seen.length, -1);
  return { statuses, isComplete, hasClosed, seen: [...seen, ...later], nextStatus: next.status };
}

interface ConfigOptions {
  /** How long heads and handshakes of clients may take. */
  readonly headersMs?: number;
  /** `tls` of the replica. */
  readonly tls?: object | null;
}

/** The configuration of an attacked gateway. */
export function toConfig(
  replicaUrl: string,
  { headersMs = 1_000, tls = null }: ConfigOptions = {},
): { readonly gateway: object } {
  const replica = { name: 'a', url: replicaUrl, models: ['m'], engine: 'openai' };
  return {
    gateway: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' },
    ...{
      replicas: [tls === null ? replica : { ...replica, tls }],
      export: { to: 'file' },
      timeouts: {
        client_headers: `${headersMs}ms`,
        client_body: '1s',
        idle: '1s',
        first_byte: '10s',
        keep_alive: '2s',
        upstream_keep_alive: '60s',
      },
      limits: { body: '32MiB' },
      pass: ['POST /v1/files'],
      shutdown: { grace: '1s' },
    },
  };
}
