import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';

/** A folder of commands that stand in for real ones, and a log of how they were called. */
export interface StubCommands extends AsyncDisposable {
  readonly folder: string;
  /** The environment in which the stubs are found first. */
  readonly env: Readonly<Record<string, string>>;
  /** Command and arguments of each call so far. */
  calls(): Promise<readonly string[]>;
}

/** Creates stubs: by name, what each does in sh after its call was logged. */
export async function createStubCommands(commands: Readonly<Record<string, string>>): Promise<StubCommands> {
  const folder = await mkdtemp(join(tmpdir(), 'spangate-stubs-'));
  const log = join(folder, 'calls.log');
  await writeFile(log, '');
  for (const [name, body] of Object.entries(commands)) {
    const text = `#!/bin/sh\necho "${name} $*" >>'${log}'\n${body}\n`;
    await writeFile(join(folder, name), text, { mode: 0o755 });
  }
  return {
    folder,
    env: { PATH: `${folder}${delimiter}${process.env.PATH}` },
    calls: async () => (await readFile(log, 'utf8')).split('\n').filter((line) => line !== ''),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}
