import { printConfigFile } from '../config/load.ts';
import { type Invocation, UsageError } from './command-line/command.ts';
import { findConfigPath, readConfigFile } from './command-line/config-file.ts';
import { configOption, parseOptions } from './command-line/options.ts';

/** `gateway check -config FILE`: validates a configuration and prints it in effect, secrets masked. */
export async function check({ args, env, stdout }: Invocation): Promise<number> {
  const { values } = parseOptions(args, configOption);
  const path = findConfigPath(values.config, env);
  if (path === null) throw new UsageError('no configuration: give -config FILE or set SVC_CONFIG');
  stdout.write(printConfigFile(await readConfigFile(path, env)));
  return 0;
}
