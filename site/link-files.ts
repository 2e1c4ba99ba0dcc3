import { dirname, join } from 'node:path/posix';
import type { MarkdownRenderer } from 'vitepress';

/** Where the files of the repository that pages link to are in the site. */
export const FILES = 'files';

/**
 * Makes links to what is no page lead to a copy of it in the site: `../deploy/alerts.yaml` in a page of docs/ is
 * `/files/deploy/alerts.yaml`. The build copies these files.
 *
 * @param base the path that the site is served at, with a slash at its end
 */
export const linkFiles = (base: string) => (md: MarkdownRenderer) => {
  md.core.ruler.push('link-files', ({ tokens, env }) => {
    const folder = join('docs', dirname(env.relativePath === 'index.md' ? 'README.md' : env.relativePath));
    for (const link of tokens.flatMap(({ children }) => children ?? [])) {
      const href = link.type === 'link_open' ? link.attrGet('href') : null;
      if (href === null || /^(?:\w+:|#|\/)/.test(href)) continue;
      const path = join(folder, href.replace(/#.*$/, ''));
      if (path.startsWith('docs/') && path.endsWith('.md')) continue;
      link.attrSet('href', `${base}${FILES}/${path}`);
      // The generator leaves links with a target as they are.
      link.attrSet('target', '_self');
    }
  });
};
