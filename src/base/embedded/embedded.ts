/*
 * What the gateway reads of its own installation: files, code of threads, its version. In a single executable
 * (scripts/executable.ts) there are no files beside the code; they are embedded under names.
 *
 * It never knows what they contain.
 */

import { readFile } from 'node:fs/promises';
import { findPackageJSON } from 'node:module';
import { extname } from 'node:path';
import sea from 'node:sea'; // Node 24.0 has no getAssetKeys to import by name, and no use for it
import { Worker, type WorkerOptions } from 'node:worker_threads';

/** Reads the embedded file of that name; null where there are real files. */
function readEmbedded(name: string): Buffer | null {
  return sea.isSea() ? Buffer.from(sea.getAsset(name)) : null;
}

/** Reads every embedded file whose name begins with `prefix`, by the rest of its name; null where there are real files. */
export function readEmbeddedFolder(prefix: string): ReadonlyMap<string, Buffer> | null {
  if (!sea.isSea()) return null;
  const names = sea.getAssetKeys().filter((name) => name.startsWith(prefix));
  return new Map(names.map((name) => [name.slice(prefix.length), Buffer.from(sea.getAsset(name))]));
}

/** Starts the embedded code of that name as a thread, or else the file of that name beside the module that asks. */
export function startThread(name: string, asking: ImportMeta, options: WorkerOptions): Worker {
  if (sea.isSea()) return new Worker(sea.getAsset(name, 'utf8'), { ...options, eval: true });
  // In the published package both files are JavaScript.
  return new Worker(new URL(`./${name}${extname(asking.filename)}`, asking.url), options);
}

/** Reads the version from the nearest package.json: that of the checkout, or the one that a build puts beside its code. */
export async function readVersion(): Promise<string> {
  const embedded = readEmbedded('package.json');
  const text = embedded ?? (await readFile(findPackageJSON(import.meta.url) ?? ''));
  const manifest: unknown = JSON.parse(text.toString());
  return String((manifest as { readonly version?: unknown }).version);
}
