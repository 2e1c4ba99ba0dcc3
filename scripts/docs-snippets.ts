import { readFile } from 'node:fs/promises';

/**
 * Reads the first code block of a language below each heading of a Markdown page. Tests and scripts use these blocks, so
 * that the examples in the documents are tested.
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
