import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '#testkit/programs/results.ts';
import { toImageStart } from './as-in-image.ts';
import type { Surroundings, Target } from './target.ts';

interface Variant {
  readonly checkout?: (baseline: string | null) => string | null;
  readonly workers?: number;
  readonly isCollectorDown?: boolean;
  readonly hasHistory?: boolean;
  /** Without it, every case. */
  readonly onlyFor?: readonly string[];
}

/**
 * Spangate as its image runs it, with its default settings and every record exported; and the variants that some cases
 * compare it with.
 */
export const gatewayTargets: readonly Target[] = [
  toTarget('gateway', {}),
  toTarget('baseline', { checkout: (baseline) => baseline }),
  toTarget('gateway-without-history', { hasHistory: false, onlyFor: ['plain', 'burst'] }),
  toTarget('gateway-collector-down', { isCollectorDown: true, onlyFor: ['collector-down', 'queue-full'] }),
  toTarget('gateway-2-workers', { workers: 2, onlyFor: ['workers', 'workers-100k'] }),
];

function toTarget(name: string, { checkout = () => ROOT, onlyFor, ...variant }: Variant): Target {
  return {
    name,
    records: 'a span with the model, tokens, times and prefix hashes, and one per attempt',
    findObstacle: (baseline) => {
      const folder = checkout(baseline);
      if (folder === null) return 'give --baseline CHECKOUT to compare with';
      if (!existsSync(join(folder, 'src/main.ts'))) return `no src/main.ts in ${folder}`;
      return null;
    },
    prepare: (surroundings) => {
      const file = join(surroundings.folder, 'gateway.yaml');
      writeFileSync(file, toConfig(surroundings, variant));
      const { args, env } = toImageStart(checkout(surroundings.baseline) ?? ROOT);
      return { file: process.execPath, args: [...surroundings.nodeFlags, ...args, '-config', file], env };
    },
    ...(onlyFor === undefined ? {} : { isFor: (caseName: string) => onlyFor.includes(caseName) }),
  };
}

/** The configuration as JSON, which is YAML. All settings are defaults but the limit that 10,000 idle clients would reach. */
function toConfig(
  surroundings: Surroundings,
  { workers = 1, isCollectorDown = false, hasHistory = true }: Variant,
): string {
  const { port, replicaPorts, collectorPort, closedPort, tls } = surroundings;
  return JSON.stringify({
    gateway: {
      listen: `127.0.0.1:${port}`,
      admin_listen: '127.0.0.1:0',
      workers,
      ...(tls && { tls: { cert: tls.certPath, key: tls.keyPath, min_version: 'TLSv1.3' } }),
    },
    state_dir: './state',
    ...(!hasHistory && { history: 'off' }),
    replicas: replicaPorts.map((replicaPort, index) => ({
      name: `replica-${index}`,
      url: `http://127.0.0.1:${replicaPort}`,
      models: ['m'],
      engine: 'vllm',
    })),
    export: { endpoint: `http://127.0.0.1:${isCollectorDown ? closedPort : collectorPort}` },
    limits: { connections: 20_000 },
    log: { level: 'warn' },
  });
}
