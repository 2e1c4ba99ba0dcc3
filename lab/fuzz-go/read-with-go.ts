import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

/** A program in Go that reads bodies. */
export interface GoReader extends Disposable {
  /** The members that it reads of each of them; null: it refuses the body. */
  read(bodies: readonly Buffer[]): Promise<readonly (object | null)[]>;
}

/** Starts the program, which `go run` builds. It ends with this process. */
export function startGoReader(): GoReader {
  const child = spawn('go', ['run', '.'], {
    cwd: join(import.meta.dirname, 'decoder'),
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const readAnswer = async (): Promise<object | null> => {
    const { value, done } = await answers.next();
    if (done === true) throw new Error('the program in Go has ended');
    const { request } = JSON.parse(value) as { readonly request?: object };
    return request ?? null;
  };
  return {
    async read(bodies) {
      child.stdin.write(bodies.map((body) => `${body.toString('base64')}\n`).join(''));
      const requests: (object | null)[] = [];
      for (let left = bodies.length; left > 0; left--) requests.push(await readAnswer());
      return requests;
    },
    [Symbol.dispose]() {
      child.stdin.end();
    },
  };
}
