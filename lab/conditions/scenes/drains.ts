import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { callAdmin } from '../act.ts';
import type { Scene } from '../scene.ts';

export const DRAIN_SCENES: readonly Scene[] = [
  {
    id: 'drain_old',
    subject: 'a',
    async play(stage) {
      const first = await stage.gateway();
      await callAdmin(first, '/admin/replicas/a/drain');
      await first.end('SIGTERM');
      // As if it had been drained two hours ago.
      const path = join(await stage.folder('gateway'), 'state/drains.json');
      const text = await readFile(path, 'utf8');
      const since = new Date(Date.now() - 7_200_000).toISOString();
      await writeFile(path, text.replaceAll(/"since":\s*"[^"]+"/g, `"since":"${since}"`));
      const gateway = await stage.gateway();
      return { gateway, mend: () => callAdmin(gateway, '/admin/replicas/a/undrain') };
    },
  },
  {
    id: 'ramp_running',
    subject: 'a',
    async play(stage) {
      const gateway = await stage.gateway({ rollout: { ramp: '10s' } });
      return {
        gateway,
        async bring() {
          await callAdmin(gateway, '/admin/replicas/a/drain');
          await callAdmin(gateway, '/admin/replicas/a/undrain');
        },
      };
    },
  },
  {
    id: 'rollout_stopped',
    subject: 'a',
    async play(stage) {
      const gateway = await stage.gateway();
      const traceId = randomBytes(16).toString('hex');
      const tell = (step: string, outcome: string, more: Readonly<Record<string, string>> = {}) => {
        const query = new URLSearchParams({
          trace_id: traceId,
          span_id: randomBytes(8).toString('hex'),
          step,
          start_ms: String(Date.now() - 60_000),
          outcome,
          ...more,
        });
        return callAdmin(gateway, `/admin/rollout-steps?${query}`);
      };
      return {
        gateway,
        async bring() {
          await tell('restart', 'ok', { replica: 'a' });
          await tell('replica', 'bad', { replica: 'a', sentence: 'slower than its peers' });
          await tell('rollout', 'bad', { sentence: '0 of 2 replicas done' });
        },
        mend: () => tell('rollout', 'ok'),
      };
    },
  },
];
