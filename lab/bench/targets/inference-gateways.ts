import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findInVenv, readVenvVersion } from '../rivals/installed.ts';
import type { Surroundings, Target } from './target.ts';

const COUNTERS = 'counters of Prometheus, which nobody collects here';

/** https://github.com/vllm-project/router */
export const vllmRouter: Target = {
  name: 'vllm-router',
  records: COUNTERS,
  findObstacle: () => findInVenv('vllm-router', 'vllm-router').obstacle,
  readVersion: () => readVenvVersion('vllm-router'),
  startTimeoutMs: 60_000,
  prepare: (surroundings) => ({
    ...findInVenv('vllm-router', 'vllm-router').command,
    args: [...toRouterArgs(surroundings), '--log-level', 'error'],
  }),
};

/** Shepherd Model Gateway, https://pypi.org/project/smg/ */
export const smg: Target = {
  name: 'smg',
  records: COUNTERS,
  findObstacle: () => findInVenv('smg', 'smg').obstacle,
  readVersion: () => readVenvVersion('smg'),
  startTimeoutMs: 60_000,
  prepare: (surroundings) => ({
    ...findInVenv('smg', 'smg').command,
    args: ['launch', ...toRouterArgs(surroundings), '--log-level', 'error'],
  }),
};

/** Both descend from one router and share these options. */
function toRouterArgs({ port, replicaPorts, sparePort }: Surroundings): readonly string[] {
  return [
    ...['--host', '127.0.0.1', '--port', String(port), '--policy', 'round_robin'],
    ...['--prometheus-host', '127.0.0.1', '--prometheus-port', String(sparePort)],
    '--worker-urls',
    ...replicaPorts.map((replicaPort) => `http://127.0.0.1:${replicaPort}`),
  ];
}

/** It does not start without a key for its clients: https://docs.litellm.ai/docs/proxy/virtual_keys */
const LITELLM_KEY = `sk-${randomBytes(32).toString('hex')}`;

/** https://docs.litellm.ai/docs/proxy/configs */
export const litellm: Target = {
  name: 'litellm',
  records: 'nothing that leaves the process, without a database and a callback',
  findObstacle: () => findInVenv('litellm', 'litellm').obstacle,
  readVersion: () => readVenvVersion('litellm'),
  isFor: (caseName) => caseName === 'plain' || caseName === 'burst',
  startTimeoutMs: 90_000,
  prepare: ({ port, replicaPorts, folder }) => {
    const file = join(folder, 'litellm.yaml');
    const modelList = replicaPorts.map((replicaPort) => ({
      model_name: 'm',
      litellm_params: { model: 'openai/m', api_base: `http://127.0.0.1:${replicaPort}/v1`, api_key: 'none' },
    }));
    writeFileSync(file, JSON.stringify({ model_list: modelList }));
    const args = ['--config', file, '--host', '127.0.0.1', '--port', String(port), '--num_workers', '1'];
    return {
      ...findInVenv('litellm', 'litellm').command,
      args,
      // The cost map of the package, not that of the network.
      env: { LITELLM_LOCAL_MODEL_COST_MAP: 'True', LITELLM_MASTER_KEY: LITELLM_KEY },
    };
  },
  toHeaders: () => [`Authorization: Bearer ${LITELLM_KEY}`],
};
