import { readFile } from 'node:fs/promises';
import { UnusableSettingError } from '#base';
import type { ConfigFile, LoadedConfigFile } from '#config';
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
  const { loadConfigText, toFileProblem } = await import('#config'); // help and version start without it
  const text = await readFile(path, 'utf8').catch((error: unknown) => {
    throw new UnusableSettingError(
      `cannot read the configuration file ${path}: ${toFileProblem(error)}`,
      error,
    );
  });
  return await loadConfigText(text, { path, env });
}
