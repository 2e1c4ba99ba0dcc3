import { type Config, parseConfig } from '#config';
import { hostOf, nameOfReplica, PORTS } from '../addresses.ts';
import type { Plan } from '../plan.ts';

/** The state_dir of every gateway, each on its own disk. */
export const STATE_DIR = '/state/gateway';

/** Where a gateway keeps the records and ledger spans that the collector would not take. */
export const SPOOLS = [`${STATE_DIR}/spool`, `${STATE_DIR}/spool-ledger`] as const;

/** The configuration of a gateway, as its file would have it. */
export function createConfigOf(plan: Plan, index: number, firstByteMs: number): Config {
  const host = hostOf.gateway(index);
  const text = JSON.stringify({
    gateway: {
      listen: `${host}:${PORTS.clients}`,
      admin_listen: `${host}:${PORTS.admin}`,
      workers: plan.workers,
      name: `gateway-${index}`,
    },
    state_dir: STATE_DIR,
    // Its database is written by SQLite, which no simulation has: test/history.
    history: 'off',
    replicas: Array.from({ length: plan.replicas }, (_, replica) => ({
      name: nameOfReplica(replica),
      url: `http://${hostOf.replica(replica)}:${PORTS.replica}`,
      models: ['m'],
      engine: 'openai',
      ...(plan.maxInflight === null ? {} : { max_inflight: plan.maxInflight }),
    })),
    routing: { policy: plan.routing },
    export: {
      to: plan.exportTo,
      // Files are closed and renamed under way.
      file: { max_age: '700ms' },
      ...(plan.hasLedger ? { ledger: { interval: '400ms' } } : {}),
      endpoint: `http://${hostOf.collector}:${PORTS.collector}`,
      queue_size: plan.queueSize,
      batch_size: plan.batchSize,
      interval: '300ms',
      retry: { initial: '50ms', max: '400ms' },
    },
    timeouts: {
      connect: '400ms',
      first_byte: `${firstByteMs}ms`,
      idle: '2s',
      client_headers: '2s',
      client_body: '3s',
      keep_alive: '5s',
      upstream_keep_alive: '1s',
    },
    shutdown: { delay: '0s', grace: '1s', flush: '1s' },
    ...(plan.gateways === 1 ? {} : { state: { redis: `redis://${hostOf.redis}:${PORTS.redis}` } }),
  });
  return parseConfig(text, { path: 'gateway.yaml', env: {} });
}
