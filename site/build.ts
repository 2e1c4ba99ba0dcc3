import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { cp, mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { FILES } from './link-files.ts';

/*
 * npm run site: makes build/site from docs/, with a search, and checks its links. Exits with 1 if one is dead.
 * npm run site -- --serve: and serves it on a port of loopback.
 */

const SITE = import.meta.dirname;
const ROOT = join(SITE, '..');
const OUT = join(ROOT, 'build/site');
/** See srcDir of the configuration. */
const PAGES = join(SITE, '.pages');
const BASE = process.env.SITE_BASE ?? '/';

/** A link or a picture of a built page. */
interface Link {
  readonly page: string;
  /** Its target in the site, without the base. */
  readonly path: string;
  readonly anchor: string;
}

const run = (command: string, ...args: readonly string[]) =>
  execFileSync(command, args, { cwd: SITE, stdio: ['ignore', 'inherit', 'inherit'] });

if (!existsSync(join(SITE, 'node_modules'))) run('npm', 'ci', '--no-audit', '--no-fund', '--ignore-scripts');
await rm(OUT, { recursive: true, force: true });
await rm(PAGES, { recursive: true, force: true });
await cp(join(ROOT, 'docs'), PAGES, { recursive: true });
run(join(SITE, 'node_modules/.bin/vitepress'), 'build', '.');
const links = readLinks();
for (const path of new Set(links.map((link) => link.path))) {
  if (path.startsWith(`${FILES}/`)) await copyFile(decodeURI(path));
}
const dead = links.filter(isDead);
for (const { page, path, anchor } of dead) console.error(`${page}: ${path}${anchor} is not there`);
console.log(
  `${new Set(links.map(({ page }) => page)).size} pages, ${links.length} links, ${dead.length} dead`,
);
if (dead.length > 0) process.exit(1);
if (process.argv.includes('--serve'))
  run(join(SITE, 'node_modules/.bin/vitepress'), 'preview', '.', '--host', '127.0.0.1');

function readLinks(): readonly Link[] {
  return globSync('**/*.html', { cwd: OUT })
    .filter((page) => !page.startsWith(`${FILES}/`) && page !== '404.html')
    .flatMap((page) => {
      const html = readFileSync(join(OUT, page), 'utf8');
      const targets = [...html.matchAll(/<(?:a|img)\b[^>]*?\s(?:href|src)="([^"]+)"/g)].map(
        ([, target = '']) => target,
      );
      return targets.flatMap((target) => toLink(page, target));
    });
}

function toLink(page: string, target: string): readonly Link[] {
  const url = new URL(target, `http://site${BASE}${page}`);
  if (url.host !== 'site') return [];
  const path = url.pathname.slice(BASE.length);
  return [{ page, path: path === '' || path.endsWith('/') ? `${path}index.html` : path, anchor: url.hash }];
}

function isDead({ path, anchor }: Link): boolean {
  const file = join(OUT, decodeURI(path));
  if (!existsSync(file)) return true;
  return anchor !== '' && !readFileSync(file, 'utf8').includes(`id="${decodeURI(anchor.slice(1))}"`);
}

/** Copies a file of the repository that a page links to; of a folder a page with its files. */
async function copyFile(target: string): Promise<void> {
  const path = target.replace(/^files\//, '').replace(/\/(?:index\.html)?$/, '');
  const from = join(ROOT, path);
  if (!existsSync(from)) return;
  const to = join(OUT, FILES, path);
  await mkdir(dirname(to), { recursive: true });
  if (!(await stat(from)).isDirectory()) return cp(from, to);
  const names = (await readdir(from, { withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
  await mkdir(to, { recursive: true });
  for (const name of names) await cp(join(from, name), join(to, name));
  const items = names.map((name) => `<li><a href="${name}">${name}</a></li>`).join('');
  await writeFile(
    join(to, 'index.html'),
    `<!doctype html><title>${path}</title><h1>${path}</h1><ul>${items}</ul>`,
  );
}
