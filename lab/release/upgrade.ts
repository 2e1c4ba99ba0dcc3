import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFakeCollector } from '#testkit/fake-collector.ts';
import { Load, type LoadResult } from '#testkit/load/load.ts';
import { findFreePort } from '#testkit/processes/free-port.ts';
import { startServer } from '#testkit/programs/child.ts';
import { askAdmin, type GatewayProcess, startGateway } from '#testkit/programs/gateway-process.ts';
import type { Tell } from '#testkit/programs/progress.ts';
import { startReplicaSet } from '#testkit/programs/replica-set.ts';
import { ROOT } from '#testkit/programs/results.ts';
import { compareRecords, type RecordComparison } from '../rollout/records.ts';
import type { Installed } from './artefacts.ts';

const REQUESTS_PER_SECOND = 40;
const REQUESTS_AFTER = 100;
/** It stays drained over all replacements. */
const DRAINED = 'vllm-3';

/** What one replacement of a gateway has kept. */
export interface Replacement {
  readonly gateway: string;
  readonly from: string;
  readonly to: string;
  /** How long the new one took to serve. */
  readonly startMs: number;
  /** Records that the old one left in the spool, and the new one sent. */
  readonly restored: number;
  /** The requests that the history had before, and has of the same time after. */
  readonly historyBefore: number;
  readonly historyAfter: number;
  readonly isDrainKept: boolean;
}

/** The result of an upgrade and the way back. */
export interface UpgradeReport extends LoadResult, RecordComparison {
  readonly replacements: readonly Replacement[];
}

/**
 * Two gateways behind HAProxy, under load, go through these installations, one after the other: each is replaced with its
 * state_dir. The collector is away at each end, so that records have to go through the spool.
 */
export async function upgrade(
  [first, ...next]: readonly [Installed, ...Installed[]],
  tell: Tell,
): Promise<UpgradeReport> {
  await using cleanUp = new AsyncDisposableStack();
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'spangate-upgrade-')));
  const collector = cleanUp.use(await startFakeCollector());
  const replicaSet = cleanUp.use(await startReplicaSet(() => load));
  const slots = await Promise.all(
    ['gateway-1', 'gateway-2'].map(async (name) => {
      const listen = `127.0.0.1:${await findFreePort()}`;
      const config = toConfig(listen, replicaSet.replicas, collector.url);
      const home = cleanUp.use(await mkdtempDisposable(join(folder.path, `${name}-`))).path;
      const start = async ({ command }: Installed) =>
        cleanUp.use(await startGateway(home, config, {}, { command }));
      return { name, listen, start, gateway: await start(first) };
    }),
  );
  const [one = '', two = ''] = slots.map(({ listen }) => listen);
  const balancer = cleanUp.use(await startBalancer(one, two));
  for (const { gateway } of slots)
    await askAdmin(gateway.adminUrl, 'POST', `/admin/replicas/${DRAINED}/drain`);
  const load = new Load(balancer.url, REQUESTS_PER_SECOND);
  await load.untilEnded(REQUESTS_AFTER);

  const replacements: Replacement[] = [];
  let from = first;
  for (const to of next) {
    for (const slot of slots) {
      tell(`${slot.name}: from ${from.version} to ${to.version}`);
      const untilIso = new Date().toISOString();
      const historyBefore = await countHistory(slot.gateway, untilIso);
      collector.answerAlways({ status: 503 });
      const isUp = balancer.child.untilLine((line) => line.includes(`/${slot.name} is UP`));
      await slot.gateway.end('SIGTERM');
      const endedAtMs = performance.now();
      slot.gateway = await slot.start(to);
      const startMs = Math.round(performance.now() - endedAtMs);
      collector.answerAlways({});
      await isUp;
      await load.untilEnded(REQUESTS_AFTER);
      const { restored = 0 } = await slot.gateway.untilDelivered();
      replacements.push({
        gateway: slot.name,
        from: from.version,
        to: to.version,
        startMs,
        restored,
        historyBefore,
        historyAfter: await countHistory(slot.gateway, untilIso),
        isDrainKept: await isDrained(slot.gateway),
      });
    }
    from = to;
  }
  const result = await load.stop();
  for (const { gateway } of slots) await gateway.untilDelivered();
  return { ...result, ...compareRecords(collector, result.requestIds), replacements };
}

function toConfig(
  listen: string,
  replicas: readonly { readonly name: string; readonly url: string }[],
  collectorUrl: string,
): object {
  return {
    gateway: { listen, admin_listen: '127.0.0.1:0' },
    state_dir: './state',
    replicas: replicas.map(({ name, url }) => ({ name, url, models: ['m'], engine: 'vllm' })),
    health: {},
    export: { endpoint: collectorUrl, interval: '100ms', retry: { initial: '50ms', max: '500ms' } },
    metrics: { otlp: false },
    timeouts: { connect: '30s' },
    // Of deploy/haproxy: it is told before the listener closes.
    shutdown: { delay: '5s', flush: '1s' },
  };
}

/** The requests until then that the history of a gateway has. Records may take a second to arrive there. */
async function countHistory({ adminUrl }: GatewayProcess, untilIso: string): Promise<number> {
  const query = new URLSearchParams({ since: '1h', until: untilIso });
  const { rows } = (await askAdmin(adminUrl, 'GET', `/admin/usage?${query}`)) as {
    rows: readonly { readonly requests: number }[];
  };
  return rows.reduce((sum, { requests }) => sum + requests, 0);
}

async function isDrained({ adminUrl }: GatewayProcess): Promise<boolean> {
  const { replicas } = (await askAdmin(adminUrl, 'GET', '/admin/replicas')) as {
    replicas: readonly { readonly name: string; readonly drained: boolean }[];
  };
  return replicas.find(({ name }) => name === DRAINED)?.drained === true;
}

/** HAProxy with the configuration that is shipped. */
async function startBalancer(first: string, second: string) {
  const listen = `127.0.0.1:${await findFreePort()}`;
  const env = { PATH: `${process.env.PATH}:/usr/sbin`, LISTEN: listen, GATEWAY_1: first, GATEWAY_2: second };
  return await startServer(
    { file: 'haproxy', args: ['-f', join(ROOT, 'deploy/haproxy/haproxy.cfg')], env, isIsolated: true },
    { url: `http://${listen}`, path: '/healthz' },
    { stdout: 'lines' },
  );
}
