import { readFile } from 'node:fs/promises';
import { readEmbedded } from './embedded.ts';

/** Reads the version from the package.json of the checkout; the build puts one beside the built sources. */
export async function readVersion(): Promise<string> {
  const embedded = readEmbedded('package.json');
  const text = embedded ?? (await readFile(new URL('../../package.json', import.meta.url)));
  const manifest: unknown = JSON.parse(text.toString());
  return String((manifest as { readonly version?: unknown }).version);
}
