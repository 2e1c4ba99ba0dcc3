import { readFile } from 'node:fs/promises';

/**
 * The code blocks of a language in a Markdown page, by the heading above them, so that tests and scripts use what the
 * docs show. Only the first block below each heading counts.
 */
export async function readSnippets(path: string, language: string): Promise<ReadonlyMap<string, string>> {
  const snippets = new Map<string, string>();
  let heading = '';
  const pattern = /^#+ (?<heading>.+)$|^```(?<language>\w*)\n(?<code>[\s\S]*?)^```$/gm;
  for (const { groups = {} } of (await readFile(path, 'utf8')).matchAll(pattern)) {
    if (groups.heading !== undefined) heading = groups.heading;
    else if (groups.language === language && !snippets.has(heading)) snippets.set(heading, groups.code ?? '');
  }
  return snippets;
}
