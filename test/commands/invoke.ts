import { PassThrough, Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { run } from '../../src/commands/run.ts';

/** What a command line did. */
export interface Outcome {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process, as src/main.ts would, with these variables, this input and no signals. */
export async function invoke(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  stdin: AsyncIterable<Uint8Array> = Readable.from([]),
): Promise<Outcome> {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const signals = { shutdown: new AbortController().signal, onHangup: () => {} };
  const exitCode = await run({ args, env, stdin, stdout, stderr, signals });
  stdout.end();
  stderr.end();
  return { exitCode, stdout: await text(stdout), stderr: await text(stderr) };
}
