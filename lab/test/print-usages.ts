import { join } from 'node:path';
import { PROGRAMS, toFile } from '../main.ts';

/*
 * Prints what each program of the lab prints with --help, as JSON by its name. One process for all: each loads much of the
 * same, and that takes longer than all else.
 */

class Ended extends Error {}

const usages: Record<string, string> = {};
const { log } = console;
process.exit = () => {
  throw new Ended();
};
for (const name of Object.keys(PROGRAMS)) {
  const path = join(import.meta.dirname, '..', toFile(name));
  process.argv = [process.execPath, path, '--help'];
  console.log = (text: string) => {
    usages[name] = text;
  };
  await import(path).catch((error: unknown) => {
    if (!(error instanceof Ended)) throw error;
  });
}
log(JSON.stringify(usages));
