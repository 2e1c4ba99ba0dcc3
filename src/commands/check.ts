import { printConfigFile } from '../config/load.ts';
import type { Invocation } from './command-line/command.ts';
import { COMMANDS } from './command-line/command-table.ts';
import { readConfigFile, requireConfigPath } from './command-line/config-file.ts';
import { parseOptions } from './command-line/options.ts';

/** `gateway check -config FILE`: validates a configuration and prints it with all defaults, secrets masked. */
export async function check({ args, env, stdout }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.check.options);
  const path = requireConfigPath(values.config, env);
  stdout.write(printConfigFile(await readConfigFile(path, env)));
  return 0;
}
