import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A file of the dashboard, ready to be served. */
export interface Asset {
  readonly mediaType: string;
  readonly body: Buffer;
}

/** The page and files of the dashboard. They contain no data; the page loads it from the admin API. */
export interface DashboardAssets {
  /** The page at `/`. */
  readonly page: Asset;
  /** The files that the page loads, by `folder/name`. */
  readonly files: ReadonlyMap<string, Asset>;
  /** Changes with the files and is part of their paths, so that they can be cached forever. */
  readonly version: string;
}

const PAGE_DIRECTORY = join(import.meta.dirname, 'page');
const PAGE = 'index.html';

/** The published files of the chart library. */
const UPLOT_FILES = {
  'uplot/uplot.js': 'uplot/dist/uPlot.iife.min.js',
  'uplot/uplot.css': 'uplot/dist/uPlot.min.css',
};

const MEDIA_TYPES: ReadonlyMap<string, string> = new Map([
  ['.css', 'text/css; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
]);

/** Reads the dashboard into memory. Replaces `{assets}` in the page by the path of the files. */
export function loadAssets(): DashboardAssets {
  const files = new Map<string, Asset>();
  const entries = readdirSync(PAGE_DIRECTORY, { withFileTypes: true });
  for (const folder of entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .toSorted()) {
    for (const name of readdirSync(join(PAGE_DIRECTORY, folder)).toSorted()) {
      const mediaType = MEDIA_TYPES.get(extname(name));
      if (mediaType === undefined) continue;
      files.set(`${folder}/${name}`, { mediaType, body: readFileSync(join(PAGE_DIRECTORY, folder, name)) });
    }
  }
  for (const [name, specifier] of Object.entries(UPLOT_FILES)) {
    const path = fileURLToPath(import.meta.resolve(specifier));
    files.set(name, { mediaType: MEDIA_TYPES.get(extname(name)) ?? '', body: readFileSync(path) });
  }
  const version = toVersion(files);
  const page = readFileSync(join(PAGE_DIRECTORY, PAGE), 'utf8').replaceAll(
    '{assets}',
    `dashboard/${version}`,
  );
  return { page: { mediaType: 'text/html; charset=utf-8', body: Buffer.from(page) }, files, version };
}

function toVersion(files: ReadonlyMap<string, Asset>): string {
  const hash = createHash('sha256');
  for (const [name, { body }] of files) hash.update(`${name} ${body.length} `).update(body);
  return hash.digest('hex').slice(0, 16);
}
