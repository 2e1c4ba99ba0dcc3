import type { Environment } from '../environment.ts';
import { readSecretFile, SecretError } from './secret-file.ts';

/** A secret from the environment. */
export interface GivenSecret {
  /** As given, without the line break that ends a file; empty if it is not set. */
  readonly text: string;
  /** Where it comes from, for messages. */
  readonly source: string;
  readonly isFile: boolean;
}

/** Reads the variable `name`, or the file that `name_FILE` names. An empty variable counts as unset. */
export async function readSecret(name: string, env: Environment): Promise<GivenSecret> {
  const given = env[name] ?? '';
  const fileName = `${name}_FILE`;
  const path = env[fileName] ?? '';
  if (path === '') return { text: given, source: name, isFile: false };
  if (given !== '') throw new SecretError(`${name} and ${fileName} are both set: set only one of them`);
  // Not the path: the variable may hold the secret itself by mistake.
  const source = `the file that ${fileName} names`;
  return { text: await readSecretFile(path, source), source, isFile: true };
}
