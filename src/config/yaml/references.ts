import { resolve } from 'node:path';
import { type Environment, readSecretFile, SecretError } from '#config/secrets';

/** What the values of a configuration may refer to. */
export interface ReferenceSources {
  readonly env: Environment;
  readonly files: SecretFiles;
}

/** Contents of files, or why a file cannot be used, by the path that the configuration gives. */
export type SecretFiles = ReadonlyMap<string, string | SecretError>;

/** A text after expansion, and the problems for the author of the file. Problems contain no value. */
export interface Expansion {
  readonly text: string;
  /** Whether the text contains the content of a file. */
  readonly isFromFile: boolean;
  readonly problems: readonly string[];
}

/** `$${`, which stands for `${`, or a reference with its content and its end, which may be missing. */
const REFERENCE = /\$\$\{|\$\{([^}]*)(\}?)/g;
const FILE = /^file:(.+)$/s;

/**
 * Replaces each `${NAME}` by the value of the variable and each `${file:PATH}` by the content of the file; `$${` is a
 * literal `${`. Values are not expanded again.
 */
export function expandReferences(text: string, { env, files }: ReferenceSources): Expansion {
  const problems: string[] = [];
  let isFromFile = false;
  const expanded = text.replace(REFERENCE, (found, content: string | undefined, end) => {
    if (content === undefined) return '${';
    const path = end === '' ? undefined : FILE.exec(content)?.[1];
    if (path !== undefined) isFromFile = true;
    const value = path === undefined ? readVariable(content, end, env) : readFile(path, files);
    if (typeof value === 'string') return value;
    problems.push(value.problem);
    return found;
  });
  return { text: expanded, isFromFile, problems };
}

function readVariable(name: string, end: string, env: Environment): string | { readonly problem: string } {
  if (end === '' || !/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
    return {
      problem: `found an invalid reference, expected \${NAME} or \${file:PATH} (or $\${ for a literal \${)`,
    };
  }
  // Every object inherits names such as `constructor`.
  const value = Object.hasOwn(env, name) ? env[name] : undefined;
  return value ?? { problem: `found \${${name}}, but the variable ${name} is not set` };
}

function readFile(path: string, files: SecretFiles): string | { readonly problem: string } {
  const content = files.get(path);
  if (content === undefined) {
    return { problem: `found a \${file:…} whose path has escapes, expected it as it is` };
  }
  return content instanceof SecretError
    ? { problem: `found \${file:${path}}, but ${content.message}` }
    : content;
}

/**
 * Reads the files that a configuration text refers to. Relative paths begin at `directory`. Reads one after another, so
 * that a thousand of them need one file descriptor.
 */
export async function readReferencedFiles(text: string, directory: string): Promise<SecretFiles> {
  const paths = Array.from(text.matchAll(REFERENCE), ([, content, end]) =>
    end === '}' ? FILE.exec(content ?? '')?.[1] : undefined,
  );
  const files = new Map<string, string | SecretError>();
  for (const path of new Set(paths.filter((each) => each !== undefined))) {
    files.set(path, await readOne(resolve(directory, path)));
  }
  return files;
}

async function readOne(path: string): Promise<string | SecretError> {
  try {
    return await readSecretFile(path, 'the file');
  } catch (error) {
    if (error instanceof SecretError) return error;
    throw error;
  }
}
