import { hash } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { readSecretFile } from '#config/secrets';

/** A file that a configuration was read from: itself, or one that it refers to. */
export interface ConfigFile {
  readonly path: string;
  readonly kind: 'configuration' | 'reference';
  /** Of what was read; null: it could not be read. */
  readonly digest: string | null;
}

/** What stands for a content that must not be kept. */
export function toDigest(text: string): string {
  return hash('sha256', text);
}

/** Finds out which files of a configuration have changed on disk since they were read. */
export class ConfigFiles {
  #files: readonly ConfigFile[] = [];
  /** What was found when a file had this version. */
  #seen = new Map<string, { readonly version: string; readonly digest: string | null }>();

  /** Compares with these from now on. */
  adopt(files: readonly ConfigFile[]): void {
    this.#files = files;
    const paths = new Set(files.map(({ path }) => path));
    this.#seen = new Map([...this.#seen].filter(([path]) => paths.has(path)));
  }

  /** The paths of those that differ now. A file that has not been touched since the last call is not read again. */
  async findChanged(): Promise<readonly string[]> {
    const files = this.#files;
    const changed: string[] = [];
    for (const file of files) if ((await this.#digestOf(file)) !== file.digest) changed.push(file.path);
    // They may have been adopted meanwhile.
    return files === this.#files ? changed : [];
  }

  async #digestOf({ path, kind }: ConfigFile): Promise<string | null> {
    try {
      const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
      const version = [dev, ino, size, mtimeNs, ctimeNs].join(' ');
      const seen = this.#seen.get(path);
      if (seen?.version === version) return seen.digest;
      const digest = toDigest(
        kind === 'reference' ? await readSecretFile(path, 'the file') : await readFile(path, 'utf8'),
      );
      this.#seen.set(path, { version, digest });
      return digest;
    } catch {
      return null;
    }
  }
}
