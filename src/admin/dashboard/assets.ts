import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readEmbeddedFolder } from '#base/embedded';

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

const PAGE = 'index.html';
/** What the names of the dashboard's files begin with in a single executable. */
export const EMBEDDED_DASHBOARD = 'dashboard/';

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
  const bodies = readEmbeddedFolder(EMBEDDED_DASHBOARD) ?? readFiles(findDashboardFiles());
  const files = new Map<string, Asset>();
  for (const [name, body] of bodies) {
    const mediaType = MEDIA_TYPES.get(extname(name));
    if (mediaType !== undefined) files.set(name, { mediaType, body });
  }
  const version = toVersion(files);
  const page = String(bodies.get(PAGE)).replaceAll('{assets}', `dashboard/${version}`);
  return { page: { mediaType: 'text/html; charset=utf-8', body: Buffer.from(page) }, files, version };
}

/** The paths of the dashboard's files by their names: `index.html`, and `folder/name` of those that it loads. */
export function findDashboardFiles(): ReadonlyMap<string, string> {
  const directory = join(import.meta.dirname, 'page');
  const paths = new Map([[PAGE, join(directory, PAGE)]]);
  const folders = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  for (const folder of folders.map(({ name }) => name).toSorted()) {
    for (const name of readdirSync(join(directory, folder)).toSorted()) {
      if (MEDIA_TYPES.has(extname(name))) paths.set(`${folder}/${name}`, join(directory, folder, name));
    }
  }
  for (const [name, specifier] of Object.entries(UPLOT_FILES)) {
    // A bundle (scripts/bundle.ts) has them beside the others.
    if (!paths.has(name)) paths.set(name, fileURLToPath(import.meta.resolve(specifier)));
  }
  return paths;
}

function readFiles(paths: ReadonlyMap<string, string>): ReadonlyMap<string, Buffer> {
  return new Map([...paths].map(([name, path]) => [name, readFileSync(path)]));
}

function toVersion(files: ReadonlyMap<string, Asset>): string {
  const hash = createHash('sha256');
  for (const [name, { body }] of files) hash.update(`${name} ${body.length} `).update(body);
  return hash.digest('hex').slice(0, 16);
}
