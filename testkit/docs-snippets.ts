import { readFile } from 'node:fs/promises';

/** A code block of a Markdown page. */
export interface Snippet {
  /** The heading above it, without its number signs. */
  readonly heading: string;
  /** What follows the opening fence: `sh`, `yaml`, …; empty if nothing does. */
  readonly language: string;
  /** Its lines, without the indentation of the fence. */
  readonly code: string;
}

/** All code blocks of a Markdown page, in their order. */
export async function readAllSnippets(path: string): Promise<readonly Snippet[]> {
  const snippets: Snippet[] = [];
  let heading = '';
  const pattern = /^#+ (?<heading>.+)$|^(?<indent> *)```(?<language>[\w-]*)\n(?<code>[\s\S]*?)^ *```$/gm;
  for (const { groups = {} } of (await readFile(path, 'utf8')).matchAll(pattern)) {
    if (groups.heading !== undefined) heading = groups.heading;
    else {
      const code = (groups.code ?? '').replaceAll(new RegExp(`^${groups.indent}`, 'gm'), '');
      snippets.push({ heading, language: groups.language ?? '', code });
    }
  }
  return snippets;
}

/**
 * The code blocks of a language in a Markdown page, by the heading above them, so that tests and scripts use what the
 * docs show. Only the first block below each heading counts.
 */
export async function readSnippets(path: string, language: string): Promise<ReadonlyMap<string, string>> {
  const snippets = new Map<string, string>();
  for (const snippet of await readAllSnippets(path)) {
    const isFirst = snippet.language === language && !snippets.has(snippet.heading);
    if (isFirst) snippets.set(snippet.heading, snippet.code);
  }
  return snippets;
}
