import { Script as VmScript } from 'node:vm';
import type { SimulatedThread, ThreadProgram } from '../platform/thread.ts';
import { GLOBAL_NAMES, ProgramCopy, type Script } from './program-copy.ts';

/** The code of the gateway: one script for each kind of thread, by the name of its file without extension. */
export class Program implements ThreadProgram {
  readonly #scripts = new Map<string, Script>();
  readonly #free = new Map<string, ProgramCopy[]>();
  /** The copies of this world, with the names of their scripts. */
  #used: (readonly [name: string, copy: ProgramCopy])[] = [];

  /** `scripts`: the bodies of functions with the parameters of a `Script`. */
  constructor(scripts: ReadonlyMap<string, string>) {
    for (const [name, code] of scripts) {
      const text = `(async function (exports, require, onReset, ${GLOBAL_NAMES.join(', ')}) {${code}\n})`;
      this.#scripts.set(name, new VmScript(text, { filename: `${name}.js` }).runInThisContext() as Script);
      this.#free.set(name, []);
    }
  }

  /** Runs a script in a thread, in a copy that no other thread of this world has used. Resolves with what it exports. */
  run(thread: SimulatedThread, name: string): Promise<Readonly<Record<string, unknown>>> {
    const script = this.#scripts.get(name);
    if (script === undefined) throw new RangeError(`there is no script ${name}`);
    const copy = this.#free.get(name)?.pop() ?? new ProgramCopy(script);
    this.#used.push([name, copy]);
    return copy.run(thread);
  }

  /** The world is over, with all its threads: other worlds may use their copies. */
  release(): void {
    for (const [name, copy] of this.#used.splice(0).reverse()) this.#free.get(name)?.push(copy);
  }
}
