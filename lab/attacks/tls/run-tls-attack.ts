import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setInterval as ticks } from 'node:timers/promises';
import { createAuthority } from '#testkit/certificates.ts';
import { exchangeRaw } from '#testkit/raw-http.ts';
import { CHAT_LINE } from '../attack.ts';
import { ADMIN_TOKEN, type Cost, type MeasuredGateway, startMeasuredGateway } from '../measured-gateway.ts';
import { type RawReplica, startRawReplica } from '../raw-replica.ts';
import { toConfig } from '../run-attack.ts';
import { issueClientCertificates } from './certificates/issue-client-certificates.ts';
import { lastCall, type TlsAttack, type TlsTarget } from './tls-attack.ts';
import { openWire } from './wire.ts';

/** What came of an attack. */
export interface TlsOutcome extends Cost {
  readonly outcome: string;
  /** How many calls of the attack took effect: chats that the replica saw, or undrains in the log. */
  readonly effects: number;
  /** What sound calls on fresh connections to both listeners with TLS get afterwards. */
  readonly nextOutcomes: readonly string[];
  /** Sockets that the gateways have open some time afterwards, beyond those that they had at the start. */
  readonly leftOpen: number;
}

/** Which listeners of the gateways are attacked: those of clients, or those of the admin API. */
export type Listeners = 'clients' | 'admin';

/** The gateways under attack, and what an attack is compared with. */
interface Testbed {
  readonly targets: Readonly<Record<Listeners, TlsTarget>>;
  readonly gateways: readonly MeasuredGateway[];
  readonly replica: RawReplica;
  /** How many sockets the gateways had open at the start: listeners, and connections to the replica. */
  readonly socketCount: number;
}

/** Gateways in processes of their own, with TLS, with client certificates, and without either. */
export interface TlsAttackedGateways extends AsyncDisposable {
  run(attack: TlsAttack, listeners: Listeners): Promise<TlsOutcome>;
}

/** What an attack sends to a listener if it sends requests. */
const REQUESTS: Readonly<Record<Listeners, Pick<TlsTarget, 'call' | 'page' | 'connectionCount'>>> = {
  clients: { call: `${CHAT_LINE}\r\nHost: g\r\n`, page: '/healthz', connectionCount: 2_000 },
  admin: {
    call: `POST /admin/replicas/a/undrain HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${ADMIN_TOKEN}\r\n`,
    page: '/',
    connectionCount: 900,
  },
};
const NAMES = ['tls', 'strict', 'plain'] as const;
/** Longer than all time-outs of the gateways, on a busy machine. */
const MAX_CLOSING_MS = 15_000;
/** The sound calls are to be in time on a busy machine. */
const HANDSHAKE_MS = 2_500;

/** Starts them, with short time-outs. */
export async function startTlsAttackedGateways(): Promise<TlsAttackedGateways> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'spangate-tls-attacks-')));
  const replica = stack.use(await startRawReplica());
  const authority = stack.use(await createAuthority());
  const [{ certPath: cert, keyPath: key }, clients] = await Promise.all([
    authority.issue('gateway'),
    issueClientCertificates(authority.ca, folder.path),
  ]);
  const tls = { tls: { cert, key }, strict: { cert, key, client_ca: authority.ca.certPath }, plain: null };
  const start = async (name: (typeof NAMES)[number]) => {
    const directory = join(folder.path, name);
    await mkdir(directory);
    const config = toConfig(replica.url, { headersMs: HANDSHAKE_MS });
    const section =
      tls[name] === null ? config.gateway : { ...config.gateway, tls: tls[name], admin_tls: tls[name] };
    return stack.use(await startMeasuredGateway({ ...config, gateway: section }, directory));
  };
  const gateways = await Promise.all(NAMES.map(start));
  const toTarget = (listeners: Listeners): TlsTarget => {
    const addressOf = ({ listen, adminListen }: MeasuredGateway) =>
      `http://${listeners === 'clients' ? listen : adminListen}`;
    const [url, strictUrl, plainUrl] = gateways.map(addressOf) as [string, string, string];
    return { ...REQUESTS[listeners], url, strictUrl, plainUrl, ca: authority.ca.cert, clients };
  };
  const targets = { clients: toTarget('clients'), admin: toTarget('admin') };
  await callBoth(targets.clients);
  await callBoth(targets.admin);
  await exchangeRaw(targets.clients.plainUrl, lastCall(targets.clients));
  const socketCount = await countSockets(gateways);
  const started = stack.move();
  return {
    run: (attack, listeners) => run(attack, listeners, { targets, gateways, replica, socketCount }),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

async function run(
  attack: TlsAttack,
  listeners: Listeners,
  { targets, gateways, replica, socketCount }: Testbed,
): Promise<TlsOutcome> {
  const target = targets[listeners];
  const countEffects = () =>
    listeners === 'clients'
      ? replica.seen.filter((line) => line === CHAT_LINE).length
      : gateways.reduce((sum, gateway) => sum + gateway.countMessages('undrain'), 0);
  const effectsBefore = countEffects();
  const costs: Cost[] = [];
  /** Acts while these gateways are measured. */
  const measured = async (rest: readonly MeasuredGateway[]): Promise<string> => {
    const [first, ...others] = rest;
    if (first === undefined) return await attack.act(target);
    const { result, ...cost } = await first.measure(() => measured(others));
    costs.push(cost);
    return result;
  };
  const outcome = await measured(gateways);
  const effects = countEffects() - effectsBefore;
  const nextOutcomes = await callBoth(target);
  const startedMs = performance.now();
  let leftOpen = 0;
  for await (const _ of ticks(20)) {
    leftOpen = Math.max(0, (await countSockets(gateways)) - socketCount);
    if (leftOpen === 0 || performance.now() - startedMs > MAX_CLOSING_MS) break;
  }
  return {
    outcome,
    effects,
    nextOutcomes,
    leftOpen,
    grownBytes: Math.max(...costs.map(({ grownBytes }) => grownBytes)),
    longestTurnMs: Math.max(...costs.map(({ longestTurnMs }) => longestTurnMs)),
    defects: costs.flatMap(({ defects }) => defects),
  };
}

async function countSockets(gateways: readonly MeasuredGateway[]): Promise<number> {
  const counts = await Promise.all(gateways.map((gateway) => gateway.countSockets()));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Sends a sound call to both listeners with TLS, on connections of their own. */
async function callBoth(target: TlsTarget): Promise<readonly string[]> {
  const { url, strictUrl, ca, clients } = target;
  return await Promise.all(
    [url, strictUrl].map(async (each) => {
      using wire = await openWire(each, { ca, ...clients.sound });
      wire.tls.write(lastCall(target));
      return await wire.untilClosed();
    }),
  );
}
