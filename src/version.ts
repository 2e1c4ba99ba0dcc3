import { readFile } from 'node:fs/promises';

/** Reads the version from the package.json of the checkout; the build puts one beside the built sources. */
export async function readVersion(): Promise<string> {
  const manifest: unknown = JSON.parse(await readFile(new URL('../package.json', import.meta.url), 'utf8'));
  return String((manifest as { readonly version?: unknown }).version);
}
