import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { bundleGateway, type SourcePatch } from '../program/bundle.ts';
import { Program } from '../program/program.ts';

/** The bundled sources in a directory, for several processes. */
export interface BundledScripts extends AsyncDisposable {
  readonly directory: string;
}

/** Bundles the sources once. */
export async function writeScripts(patch: SourcePatch | null): Promise<BundledScripts> {
  const directory = await mkdtemp(join(tmpdir(), 'spangate-simulation-'));
  const scripts = await bundleGateway(patch);
  await Promise.all([...scripts].map(([name, code]) => writeFile(join(directory, `${name}.js`), code)));
  return { directory, [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }) };
}

/** Reads what `writeScripts` wrote. */
export async function readProgram(directory: string): Promise<Program> {
  const names = await readdir(directory);
  const scripts = names.map(
    async (name) => [basename(name, '.js'), await readFile(join(directory, name), 'utf8')] as const,
  );
  return new Program(new Map(await Promise.all(scripts)));
}
