import { createGlobals } from '../platform/globals.ts';
import { createRequireOf } from '../platform/modules.ts';
import type { SimulatedThread } from '../platform/thread.ts';

/** The names of the globals that a thread has of its own. */
export const GLOBAL_NAMES = [
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

/** What a script is given: where its exports go, its `require`, how it says what to forget, and its globals. */
export type Script = (
  exports: object,
  require: unknown,
  onReset: (reset: () => void) => void,
  ...globals: readonly unknown[]
) => Promise<void>;

type Exports = Readonly<Record<string, unknown>>;

/**
 * The code of one script, as one thread after another runs it. What its modules keep is forgotten in between: a thread finds
 * them as if they had just been loaded.
 */
export class ProgramCopy {
  readonly #script: Script;
  readonly #resets: (() => void)[] = [];
  #thread: SimulatedThread | null = null;
  #exports: Exports | null = null;
  #global: object = {};
  #globalNames: ReadonlySet<PropertyKey> = new Set();

  constructor(script: Script) {
    this.#script = script;
  }

  /** Runs the script in a thread. Resolves with what it exports. */
  async run(thread: SimulatedThread): Promise<Exports> {
    this.#thread = thread;
    const loaded = this.#exports;
    if (loaded !== null) this.#forget();
    const exports = loaded ?? (await this.#load());
    if (typeof exports.start === 'function') exports.start();
    return exports;
  }

  /** Another thread has run it. */
  #forget(): void {
    for (const reset of this.#resets) reset();
    for (const name of Reflect.ownKeys(this.#global)) {
      if (!this.#globalNames.has(name)) Reflect.deleteProperty(this.#global, name);
    }
  }

  async #load(): Promise<Exports> {
    const current = () => {
      if (this.#thread === null) throw new Error('code runs without a thread');
      return this.#thread;
    };
    const globals = createGlobals(current);
    const exports = {};
    await this.#script(
      exports,
      createRequireOf(current, globals),
      (reset) => this.#resets.push(reset),
      ...GLOBAL_NAMES.map((each) => globals.all[each]),
    );
    this.#global = globals.all.globalThis as object;
    this.#globalNames = new Set(Reflect.ownKeys(this.#global));
    this.#exports = exports;
    return exports;
  }
}
