import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tryAdmin } from '../act.ts';
import type { Scene } from '../scene.ts';
import type { Stage } from '../stage.ts';

/** Runs in each thread of a gateway, and does there what its file says. */
const HOOK = (path: string) => `
const { closeSync, openSync, readdirSync, readFileSync } = require('node:fs');
const { isMainThread } = require('node:worker_threads');
const read = () => { try { return readFileSync(${JSON.stringify(path)}, 'utf8'); } catch { return ''; } };
const realNow = Date.now;
let isDone = false;
const open = [];
setInterval(() => {
  const order = read();
  if (order === 'spin' && isMainThread) { const end = Date.now() + 480; while (Date.now() < end); }
  // Near the limit of 200, and never at it, however many the gateway has open itself.
  while (order === 'open' && readdirSync('/proc/self/fd').length < 180) open.push(openSync('/dev/null'));
  if (order === 'step') Date.now = () => realNow() + 3_600_000;
  if (order === '') for (const file of open.splice(0)) closeSync(file);
  if (order === 'throw' && !isMainThread && !isDone) { isDone = true; throw new Error('a defect of the lab'); }
}, 500).unref();
`;

/** A gateway with a defect that can be ordered. */
async function withHook(stage: Stage, config: object, prefix: readonly string[] = []) {
  const folder = await stage.folder('hook');
  const [hook, orders] = [join(folder, 'hook.cjs'), join(folder, 'orders')];
  await writeFile(hook, HOOK(orders));
  const env = { NODE_OPTIONS: `--require ${hook}` };
  const gateway = await stage.gateway(config as Record<string, unknown>, env, { prefix });
  return { gateway, order: (text: string) => writeFile(orders, text) };
}

export const MACHINE_SCENES: readonly Scene[] = [
  {
    id: 'event_loop_behind',
    subject: 'main',
    async play(stage) {
      const { gateway, order } = await withHook(stage, {});
      return { gateway, bring: () => order('spin'), mend: () => order('') };
    },
  },
  {
    id: 'worker_replaced',
    subject: '',
    isSlow: true,
    async play(stage) {
      const { gateway, order } = await withHook(stage, { gateway: { workers: 2 } });
      return { gateway, bring: () => order('throw') };
    },
  },
  {
    id: 'descriptors_near_limit',
    subject: '',
    async play(stage) {
      const { gateway, order } = await withHook(stage, {}, ['prlimit', '--nofile=200']);
      return { gateway, bring: () => order('open'), mend: () => order('') };
    },
  },
  {
    id: 'clock_stepped',
    subject: '',
    async play(stage) {
      const { gateway, order } = await withHook(stage, {});
      return { gateway, bring: () => order('step') };
    },
  },
  {
    id: 'admin_tokens_refused',
    subject: '',
    isSlow: true,
    async play(stage) {
      const gateway = await stage.gateway();
      return {
        gateway,
        async bring() {
          for (let call = 0; call < 12; call++) await tryAdmin(gateway, '/admin/reload', 'wrong');
        },
      };
    },
  },
];
