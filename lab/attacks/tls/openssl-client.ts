import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { EventLog } from '#testkit/event-log.ts';

/** `openssl s_client` with a connection, for what Node's client cannot do. */
export interface OpenSslClient extends AsyncDisposable {
  /** A line that begins with `R`, `k` or `K` is a command to it (openssl-s_client(1), "CONNECTED COMMANDS"). */
  write(text: string): void;
  /** Resolves when it has printed a text this often; rejects when it has ended instead. */
  until(text: string, count: number): Promise<void>;
  /** Whether it has printed a text. */
  says(text: string): boolean;
  /** Resolves when it has ended. */
  readonly closed: Promise<unknown>;
}

/** Connects it, and resolves when the handshake is complete. */
export async function openSslClient(
  url: string,
  ca: string,
  options: readonly string[],
): Promise<OpenSslClient> {
  await using stack = new AsyncDisposableStack();
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'spangate-s-client-')));
  const caPath = join(folder.path, 'ca.pem');
  await writeFile(caPath, ca);
  const args = ['s_client', '-connect', new URL(url).host, '-CAfile', caPath, '-no_ign_eof', ...options];
  const child = spawn('openssl', args, { stdio: 'pipe' });
  const printed = new EventLog<string>();
  let text = '';
  let hasEnded = false;
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('latin1').on('data', (piece: string) => {
      text += piece;
      printed.wake();
    });
  }
  child.stdin.on('error', () => undefined);
  const closed = once(child, 'close').finally(() => {
    hasEnded = true;
    printed.wake();
  });
  stack.defer(async () => {
    child.kill();
    await closed;
  });
  const countOf = (part: string) => text.split(part).length - 1;
  const until = async (part: string, count: number) => {
    await printed.until(() => hasEnded || countOf(part) >= count);
    if (countOf(part) < count) throw new Error(`openssl ended without ${part}: ${text.slice(-500)}`);
  };
  await until('Verify return code: 0 (ok)', 1);
  const started = stack.move();
  return {
    write: (line) => child.stdin.write(line),
    until,
    says: (part) => text.includes(part),
    closed,
    [Symbol.asyncDispose]: () => started.disposeAsync(),
  };
}
