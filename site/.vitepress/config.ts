import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vitepress';
import { linkFiles } from '../link-files.ts';
import { toGitHubSlug } from '../slug.ts';

const DOCS = join(import.meta.dirname, '../../docs');

/** The folder that the site is served below, such as `/spangate/`. */
const BASE = process.env.SITE_BASE ?? '/';

/** The groups of docs/README.md and their pages. */
function readSidebar() {
  const index = readFileSync(join(DOCS, 'README.md'), 'utf8');
  return index
    .split(/^## /m)
    .slice(1)
    .map((group) => ({
      text: group.slice(0, group.indexOf('\n')),
      items: [...group.matchAll(/^\d+\. \[([^\]]+)\]\(([\w/-]+)\.md\)/gm)].map(
        ([, text = '', page = '']) => ({
          text,
          link: `/${page}`,
        }),
      ),
    }));
}

export default defineConfig({
  base: BASE,
  // A copy of docs/: what pages import is looked for beside them.
  srcDir: '.pages',
  outDir: '../build/site',
  cacheDir: '../build/site-cache',
  title: 'Spangate',
  description:
    'A gateway in front of vLLM and other inference replicas: drains, tokens, times and costs, no prompts',
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  rewrites: { 'README.md': 'index.md' },
  cleanUrls: false,
  markdown: { linkify: false, anchor: { slugify: toGitHubSlug }, config: linkFiles(BASE) },
  themeConfig: {
    search: {
      provider: 'local',
      // Pages for users before evidence, decisions and what is inside.
      options: {
        miniSearch: { searchOptions: { boostDocument: (id) => (/\/\w+\/[^/]+$/.test(id) ? 0.3 : 1) } },
      },
    },
    sidebar: readSidebar(),
    outline: [2, 3],
    docFooter: { prev: false, next: false },
  },
});
