import { mkdir, mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setInterval as ticks } from 'node:timers/promises';
import { createAuthority } from '../../../test/support/certificates.ts';
import { exchangeRaw } from '../../../test/support/raw-http.ts';
import { CHAT, CHAT_LINE } from '../attack.ts';
import { type Cost, type MeasuredGateway, startMeasuredGateway } from '../measured-gateway.ts';
import { type RawReplica, startRawReplica } from '../raw-replica.ts';
import { toConfig } from '../run-attack.ts';
import { issueClientCertificates } from './issue-client-certificates.ts';
import type { TlsAttack, TlsTarget } from './tls-attack.ts';
import { openWire } from './wire.ts';

/** What came of an attack. */
export interface TlsOutcome extends Cost {
  readonly outcome: string;
  /** How many chats of the attack the replica saw. */
  readonly forwarded: number;
  /** What sound chats on fresh connections to both listeners with TLS get afterwards. */
  readonly nextOutcomes: readonly string[];
  /** Sockets that the gateways have open some time afterwards, beyond those that they had at the start. */
  readonly leftOpen: number;
}

/** The gateways under attack, and what an attack is compared with. */
interface Testbed {
  readonly target: TlsTarget;
  readonly gateways: readonly MeasuredGateway[];
  readonly replica: RawReplica;
  /** How many sockets the gateways had open at the start: listeners, and connections to the replica. */
  readonly socketCount: number;
}

/** Gateways in processes of their own, with TLS, with client certificates, and without either. */
export interface TlsAttackedGateways extends AsyncDisposable {
  run(attack: TlsAttack): Promise<TlsOutcome>;
}

const LAST_CHAT = CHAT.replace('Host: g', 'Host: g\r\nConnection: close');
const NAMES = ['tls', 'strict', 'plain'] as const;
/** Longer than all time-outs of the gateways, on a busy machine. */
const MAX_CLOSING_MS = 15_000;

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
    const config = toConfig(replica.url);
    const section = tls[name] === null ? config.gateway : { ...config.gateway, tls: tls[name] };
    return stack.use(await startMeasuredGateway({ ...config, gateway: section }, directory));
  };
  const gateways = await Promise.all(NAMES.map(start));
  const [url, strictUrl, plainUrl] = gateways.map(({ listen }) => `http://${listen}`) as [
    string,
    string,
    string,
  ];
  const target: TlsTarget = { url, strictUrl, plainUrl, ca: authority.ca.cert, clients };
  await chatEverywhere(target);
  await exchangeRaw(plainUrl, LAST_CHAT);
  const socketCount = await countSockets(gateways);
  const started = stack.move();
  return {
    run: (attack) => run(attack, { target, gateways, replica, socketCount }),
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}

async function run(
  attack: TlsAttack,
  { target, gateways, replica, socketCount }: Testbed,
): Promise<TlsOutcome> {
  replica.seen.length = 0;
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
  const forwarded = replica.seen.filter((line) => line === CHAT_LINE).length;
  const nextOutcomes = await chatEverywhere(target);
  const startedMs = performance.now();
  let leftOpen = 0;
  for await (const _ of ticks(20)) {
    leftOpen = Math.max(0, (await countSockets(gateways)) - socketCount);
    if (leftOpen === 0 || performance.now() - startedMs > MAX_CLOSING_MS) break;
  }
  return {
    ...{ outcome, forwarded, nextOutcomes, leftOpen },
    grownBytes: Math.max(...costs.map(({ grownBytes }) => grownBytes)),
    longestTurnMs: Math.max(...costs.map(({ longestTurnMs }) => longestTurnMs)),
    defects: costs.flatMap(({ defects }) => defects),
  };
}

async function countSockets(gateways: readonly MeasuredGateway[]): Promise<number> {
  const counts = await Promise.all(gateways.map((gateway) => gateway.countSockets()));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Sends a sound chat to both listeners with TLS, on connections of their own. */
async function chatEverywhere({ url, strictUrl, ca, clients }: TlsTarget): Promise<readonly string[]> {
  return await Promise.all(
    [url, strictUrl].map(async (each) => {
      using wire = await openWire(each, { ca, ...clients.sound });
      wire.tls.write(LAST_CHAT);
      return await wire.untilClosed();
    }),
  );
}
