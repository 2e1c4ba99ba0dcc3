import { type ParseArgsOptionsConfig, parseArgs } from 'node:util';

/**
 * Reads the command line of a program of the lab. `--help` prints the usage and ends the process; an option that does
 * not exist prints the reason and the usage and ends it with code 2. An interrupted program exits in order, so that
 * its children end with it.
 */
export function startProgram<const Options extends ParseArgsOptionsConfig>(usage: string, options: Options) {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));
  process.setMaxListeners(0); // one `exit` listener for each child
  const config = { options: { ...options, help: { type: 'boolean' } } } as const;
  try {
    const { values } = parseArgs(config);
    if (!('help' in values)) return values;
    console.log(usage);
  } catch (error) {
    console.error(`${error instanceof Error ? error.message : String(error)}\n${usage}`);
    process.exit(2);
  }
  process.exit(0);
}

/** A whole number of the command line. @throws {Error} if the text is none */
export function toCount(text: string): number {
  if (!/^[0-9]{1,15}$/.test(text)) throw new Error(`${text} is not a whole number`);
  return Number(text);
}
