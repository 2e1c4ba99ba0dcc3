import { Script } from 'node:vm';
import { createGlobals } from './globals.ts';
import { createRequireOf } from './modules.ts';
import type { SimulatedThread, ThreadProgram } from './thread.ts';

/** The names of the globals that a thread has of its own. */
const GLOBAL_NAMES = [
  ...['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'clearImmediate'],
  ...[
    'Date',
    'performance',
    'process',
    'Math',
    'crypto',
    'AbortSignal',
    'Atomics',
    'WeakRef',
    'FinalizationRegistry',
  ],
  ...['globalThis', 'global'],
];

type Start = (exports: object, require: unknown, ...globals: readonly unknown[]) => Promise<void>;

/** The code of the gateway: one script for each kind of thread, by the name of its file without extension. */
export class Program implements ThreadProgram {
  readonly #starts = new Map<string, Start>();

  /** `scripts`: the bodies of functions with `exports`, `require` and the globals of a thread. */
  constructor(scripts: ReadonlyMap<string, string>) {
    for (const [name, code] of scripts) {
      const text = `(async function (exports, require, ${GLOBAL_NAMES.join(', ')}) {${code}\n})`;
      this.#starts.set(name, new Script(text, { filename: `${name}.js` }).runInThisContext() as Start);
    }
  }

  /** Runs a copy of a script in a thread. Resolves with what it exports. */
  async run(thread: SimulatedThread, name: string): Promise<Readonly<Record<string, unknown>>> {
    const start = this.#starts.get(name);
    if (start === undefined) throw new RangeError(`there is no script ${name}`);
    const globals = createGlobals(thread);
    const exports = {};
    await start(exports, createRequireOf(thread, globals), ...GLOBAL_NAMES.map((each) => globals.all[each]));
    return exports;
  }
}
