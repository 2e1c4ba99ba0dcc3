import { callAdmin, reloadWith, rewrite, tryAdmin } from '../act.ts';
import type { Scene } from '../scene.ts';

export const CONFIG_SCENES: readonly Scene[] = [
  {
    id: 'config_not_loaded',
    subject: /gateway\.yaml/,
    async play(stage) {
      const gateway = await stage.gateway();
      const folder = await stage.folder('gateway');
      return {
        gateway,
        bring: () => rewrite(folder, (config) => ({ ...config, log: { requests: true } })),
        mend: () => callAdmin(gateway, '/admin/reload'),
      };
    },
  },
  {
    id: 'reload_refused',
    subject: /gateway\.yaml/,
    async play(stage) {
      const gateway = await stage.gateway();
      const folder = await stage.folder('gateway');
      return {
        gateway,
        async bring() {
          await rewrite(folder, (config) => ({ ...config, nonsense: 1 }));
          await tryAdmin(gateway, '/admin/reload');
        },
        mend: () => reloadWith(gateway, folder, ({ nonsense: _, ...config }) => config),
      };
    },
  },
  {
    id: 'restart_needed',
    subject: '',
    async play(stage) {
      const gateway = await stage.gateway();
      const folder = await stage.folder('gateway');
      const withWorkers = (workers: number) =>
        reloadWith(gateway, folder, (config) => ({
          ...config,
          gateway: { ...(config.gateway as object), workers },
        }));
      return { gateway, bring: () => withWorkers(2), mend: () => withWorkers(1) };
    },
  },
];
