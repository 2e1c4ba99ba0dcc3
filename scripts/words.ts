import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/*
 * npm run words: how many words each page for users has. A word is what stands between spaces and has a letter or a digit, in tables and code too.
 * A test holds the sum and the number of pages below bounds.
 */

const DOCS = join(import.meta.dirname, '../docs');

/** The words of each page for users: docs/ without the folders for evidence, internals and decisions. */
export function countWords(): ReadonlyMap<string, number> {
  const pages = globSync('*.md', { cwd: DOCS }).toSorted();
  return new Map(pages.map((page) => [page, wordsOf(readFileSync(join(DOCS, page), 'utf8'))]));
}

function wordsOf(markdown: string): number {
  const text = markdown.replaceAll(/<!--.*?-->/gs, '');
  return text.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

if (import.meta.main) {
  const words = countWords();
  for (const [page, count] of words) console.log(`${page.padEnd(20)}${String(count).padStart(6)}`);
  const sum = words.values().reduce((all, count) => all + count, 0);
  console.log(`${`${words.size} pages`.padEnd(20)}${String(sum).padStart(6)}`);
}
