import { type ChildProcess, execFileSync, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { toClockEnvironment } from './clock-preload.ts';
import type { Asked, Done } from './messages.ts';

/** So many bytes a file may have on a disk that is full: no more than the database has already. */
const FULL_BYTES = 16_384;

/** The writer in a process of its own. */
export class WriterProcess {
  readonly #child: ChildProcess;
  readonly #ready: Promise<unknown>;
  readonly #exited: Promise<unknown>;

  constructor() {
    const child = fork(join(import.meta.dirname, 'writer.ts'), [], {
      serialization: 'advanced',
      env: { ...process.env, ...toClockEnvironment() },
    });
    const kill = () => child.kill('SIGKILL');
    process.once('exit', kill);
    this.#child = child;
    this.#ready = once(child, 'message');
    this.#exited = once(child, 'exit').finally(() => process.off('exit', kill));
  }

  /** Rejects if the writer ends instead. */
  async ask(asked: Asked): Promise<Done> {
    await this.#ready;
    const answered = once(this.#child, 'message');
    this.#child.send(asked);
    const done = await Promise.race([answered, this.#exited.then(() => null)]);
    if (done === null) throw new Error(`the writer has ended while it was asked: ${asked.kind}`);
    return (done as [Done])[0];
  }

  /** Asks, and kills the writer so soon after: in the middle of what it then does. */
  async killWhile(asked: Asked, afterMs: number): Promise<void> {
    await this.#ready;
    this.#child.send(asked);
    const endMs = performance.now() + afterMs;
    while (performance.now() < endMs);
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  /** Its files cannot grow; or they can again. */
  fillDisk(isFull: boolean): void {
    const limit = isFull ? `${FULL_BYTES}:unlimited` : 'unlimited:unlimited';
    execFileSync('prlimit', ['--pid', String(this.#child.pid), `--fsize=${limit}`]);
  }

  /** Resolves when it has ended by itself. */
  async end(): Promise<void> {
    this.#child.disconnect();
    await this.#exited;
  }
}
