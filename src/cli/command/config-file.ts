import type { LoadedConfig } from '#config';
import type { Environment } from '#config/secrets';
import { UsageError } from './usage-error.ts';

/** Returns the path of the configuration file: the option, else SVC_CONFIG; null if neither is set. */
export function findConfigPath(option: string | undefined, env: Environment): string | null {
  if (option === '') throw new UsageError("option '--config' needs a path");
  return option ?? (env.SVC_CONFIG || null);
}

/** As `findConfigPath`, but throws a UsageError if neither is set. */
export function requireConfigPath(option: string | undefined, env: Environment): string {
  const path = findConfigPath(option, env);
  if (path === null) throw new UsageError('no configuration: give -config FILE or set SVC_CONFIG');
  return path;
}

/** Reads a configuration file. Rejects with a ConfigError, or an UnusableSettingError. */
export async function readConfigFile(path: string, env: Environment): Promise<LoadedConfig> {
  const { loadConfig } = await import('#config'); // help and version start without it
  return await loadConfig(path, env);
}
