import { readFile } from 'node:fs/promises';
import { toFileProblem } from '../../config/file-problem.ts';
import { type LoadedConfigFile, loadConfigText } from '../../config/load.ts';
import type { ConfigFile } from '../../config/schema.ts';
import { StartError } from '../../start-error.ts';
import { type Invocation, UsageError } from './command.ts';

/** Returns the path of the configuration file: the option, else SVC_CONFIG; null if neither is set. */
export function findConfigPath(option: string | undefined, env: Invocation['env']): string | null {
  if (option === '') throw new UsageError("option '--config' needs a path");
  return option ?? (env.SVC_CONFIG || null);
}

/** As `findConfigPath`, but throws a UsageError if neither is set. */
export function requireConfigPath(option: string | undefined, env: Invocation['env']): string {
  const path = findConfigPath(option, env);
  if (path === null) throw new UsageError('no configuration: give -config FILE or set SVC_CONFIG');
  return path;
}

/** Reads a configuration file. Throws a ConfigError, or a StartError if the file cannot be read. */
export async function readConfigFile(path: string, env: Invocation['env']): Promise<ConfigFile> {
  return (await loadConfigFile(path, env)).file;
}

/** As `readConfigFile`, with what must not be shown of it. */
export async function loadConfigFile(path: string, env: Invocation['env']): Promise<LoadedConfigFile> {
  return await loadConfigText(await readText(path), { path, env });
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    throw new StartError(`cannot read the configuration file ${path}: ${toFileProblem(error)}`, error);
  }
}
