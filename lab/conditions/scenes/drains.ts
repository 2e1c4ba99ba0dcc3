import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RolloutFacts } from '#rollout-board/facts';
import { stoppedFacts } from '#testkit/rollout-facts.ts';
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
      const report = (facts: RolloutFacts) => callAdmin(gateway, `/admin/rollouts/${facts.id}/report`, facts);
      return {
        gateway,
        bring: () => report(stoppedFacts()),
        mend: () => report(stoppedFacts('aborted')),
      };
    },
  },
];
