import type { ConfigProblem } from '../config-error.ts';

/** What the parser of YAML says of a text. */
interface SyntaxFinding {
  readonly code: string;
  readonly message: string;
  readonly pos: readonly [offset: number, end: number];
}

/**
 * The errors and warnings of the parser, without quotations: the file may contain secrets. After any of them the document
 * cannot be used.
 */
export function toSyntaxProblems(
  findings: readonly SyntaxFinding[],
  text: string,
  lineOf: (offset: number) => number,
): readonly ConfigProblem[] {
  const misplaced = findWrongIndentation(findings[0], text, lineOf);
  if (misplaced !== null) return [{ line: misplaced, keyPath: '', text: WRONG_INDENTATION }];
  const problems = findings.slice(0, MAX_FINDINGS).map(({ code, message, pos: [offset] }) => ({
    line: lineOf(offset),
    keyPath: '',
    text: toSyntaxText(code, message, lineTextAt(text, offset)),
  }));
  const next = findings[MAX_FINDINGS];
  if (next === undefined) return problems;
  const moreCount = findings.length - MAX_FINDINGS;
  return [...problems, { line: lineOf(next.pos[0]), keyPath: '', text: `${moreCount} more problems` }];
}

const WRONG_INDENTATION =
  'not valid YAML: wrong indentation: begin the line in the column of the keys or items that it belongs to';

/**
 * The line whose indentation is wrong, if the first finding is of that kind; else null. The findings behind it only follow
 * from it.
 */
function findWrongIndentation(
  finding: SyntaxFinding | undefined,
  text: string,
  lineOf: (offset: number) => number,
): number | null {
  if (finding === undefined) return null;
  const { code, message, pos } = finding;
  const line = lineOf(pos[0]);
  const isKeyBesideItems = code === 'MISSING_CHAR' && message.startsWith('Sequence item without');
  if (code === 'BAD_INDENT' || isKeyBesideItems) return line;
  if (code !== 'BLOCK_AS_IMPLICIT_KEY' && code !== 'MULTILINE_IMPLICIT_KEY') return null;
  // The parser takes a key that is too far right for a part of the value above it.
  const [above = '', ...below] = linesFrom(text, pos[0]);
  const next = below.findIndex((each) => !/^\s*(?:#|$)/.test(each));
  const isDeeper = indentOf(below[next] ?? '') > indentOf(above) && KEY_LINE.test(below[next] ?? '');
  return isDeeper && /:\s+\S/.test(above) ? line + 1 + next : null;
}

const KEY_LINE = /^\s*[\w.-]+:(?:\s|$)/;
/** The parser's finding is about the lines near it. */
const MAX_NEAR_CHARS = 4096;

/** The line at an offset, and those behind it. */
function linesFrom(text: string, offset: number): readonly string[] {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  return text.slice(start, start + MAX_NEAR_CHARS).split('\n');
}

/** The column of the key, behind the dashes of items. */
function indentOf(line: string): number {
  return line.length - line.replace(/^\s*(?:-\s+)*/, '').length;
}

/** Further ones are counted, not explained: that takes time, and the parser may find one in each character. */
const MAX_FINDINGS = 20;

/** What the parser's errors usually mean, by their codes. */
const SYNTAX_HINTS: ReadonlyMap<string, string> = new Map([
  ['TAB_AS_INDENT', 'indent with spaces'],
  ['BAD_INDENT', 'compare the indentation with the lines above'],
  ['MISSING_CHAR', 'a quote, a bracket or a dash is missing, or the indentation is wrong'],
  ['MULTILINE_IMPLICIT_KEY', 'after a key, here or in the line below, a colon and a space are missing'],
  ['TAG_RESOLVE_FAILED', 'write the value without a !tag'],
  ['MULTIPLE_DOCS', 'keep one, and remove ---'],
]);

function lineTextAt(text: string, offset: number): string {
  const end = text.indexOf('\n', offset);
  return text.slice(text.lastIndexOf('\n', offset - 1) + 1, end === -1 ? undefined : end);
}

/** Removes quotations from a message of the parser, because the file may contain secrets. */
function toSyntaxText(code: string, message: string, lineText: string): string {
  const ownWords = message.replace(/[:;] .*$/s, '').replace(/"[^"]{2,}"?|'[^']{2,}'?/g, '…');
  const bracket = lineText.search(/[{[]/);
  const isVariable = bracket !== -1 && lineText.includes('${', bracket + 1);
  const hint = isVariable ? `inside { } and [ ], quote a \${NAME}` : SYNTAX_HINTS.get(code);
  return `not valid YAML: ${ownWords}${hint === undefined ? '' : `; ${hint}`}`;
}

/**
 * The parser needs up to 2 KB of memory for each part, 3 KB for a broken one. 4,096 replicas with a dozen keys each have
 * 120,000 parts; 1 MiB of clients has less.
 */
const MAX_PARTS = 150_000;
/** What is said of a file that has more. */
export const TOO_LONG = `the file has more than ${MAX_PARTS} lines, keys and items`;
/** Each line, and what begins, ends or parts values within a line. */
const PARTS = /[\n,[\]{}"'&*!]|[-?:](?=\s)/g;

/** Whether a text has so many parts that the parser would fill the memory. */
export function isTooLong(text: string): boolean {
  let count = 0;
  for (const _ of text.matchAll(PARTS)) if (++count > MAX_PARTS) return true;
  return false;
}

/** The configuration has four levels. */
const MAX_DEPTH = 100;
/** What is said of a file that is nested too deeply. */
export const TOO_DEEP = `the file is nested more than ${MAX_DEPTH} levels deep`;

/**
 * Whether brackets, or dashes and keys of one line, are nested so deeply that the parser, whose time grows with the
 * square and which calls itself, would hang or fill the stack.
 */
export function isTooDeep(text: string): boolean {
  let depth = 0;
  for (const [bracket] of text.matchAll(/[[{\]}]/g)) {
    depth = bracket === '[' || bracket === '{' ? depth + 1 : Math.max(0, depth - 1);
    if (depth > MAX_DEPTH) return true;
  }
  let nested = 0;
  for (const [word, end] of text.matchAll(/[^ \t\n]+([ \t]*\n|[ \t]+|$)/g)) {
    const isIndicator = !end?.endsWith('\n') && /^(?:[-?]|[^{}[\],"'#:]*:)[ \t]/.test(word);
    nested = isIndicator ? nested + 1 : 0;
    if (nested > MAX_DEPTH) return true;
  }
  return false;
}
