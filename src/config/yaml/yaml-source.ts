import {
  type Alias,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  type YAMLMap,
} from 'yaml';
import type { ConfigProblem } from '../config-error.ts';
import { factsAt } from '../schema.ts';
import { toKeyPath } from '../shown-value.ts';
import { expandReferences, type ReferenceSources } from './references.ts';
import { isTooDeep, isTooLong, TOO_DEEP, TOO_LONG, toSyntaxProblems } from './yaml-syntax.ts';

/** One value of the file. */
export interface Place {
  /** The line of its key or list item; of what an alias or a merge key brings, the line at the anchor. */
  readonly line: number;
  /** Before variables were expanded, so that it is safe to show. */
  readonly value: unknown;
}

/** A file as plain data. */
export interface YamlSource {
  /** Null if the file has no values; undefined if it is not valid YAML. */
  readonly data: unknown;
  /** The values by their key paths. */
  readonly places: ReadonlyMap<string, Place>;
  readonly problems: readonly ConfigProblem[];
  /** The key paths of the values that contain the content of a file. */
  readonly fromFiles: ReadonlySet<string>;
}

/** How many values aliases may bring. A thousand replicas with twenty keys each have a fifth of that. */
const MAX_ALIASED_VALUES = 100_000;

/**
 * Reads YAML, with anchors, aliases and merge keys (`<<`), and expands references in texts. Keys are not expanded. Null:
 * texts are not, either.
 */
export function readYaml(text: string, sources: ReferenceSources | null): YamlSource {
  if (/^\uFFFD|\0/.test(text)) return toUnreadable('the file is not a text in UTF-8');
  if (isTooLong(text)) return toUnreadable(TOO_LONG);
  if (isTooDeep(text)) return toUnreadable(TOO_DEEP);
  const lines = new LineCounter();
  // The walk finds keys that are there twice: the parser would compare each key with all others of its map.
  const options = { lineCounter: lines, prettyErrors: false, stringKeys: true, uniqueKeys: false } as const;
  const document = parseDocument(text, options);
  const lineOf = (offset: number) => lines.linePos(offset).line;
  const syntax = toSyntaxProblems([...document.errors, ...document.warnings], text, lineOf);
  if (syntax.length > 0) return toNoData(syntax);
  const walk = new Walk(lineOf, sources);
  const data = walk.read(document.contents);
  if (walk.isTooLarge) return toNoData(walk.problems);
  return { data, places: walk.places, problems: walk.problems, fromFiles: walk.fromFiles };
}

function toUnreadable(problem: string): YamlSource {
  return toNoData([{ line: 1, keyPath: '', text: problem }]);
}

function toNoData(problems: readonly ConfigProblem[]): YamlSource {
  return { data: undefined, places: new Map(), problems, fromFiles: new Set() };
}

/** Where the walk is. */
interface Position {
  readonly path: readonly PropertyKey[];
  /** The line of the key or item. */
  readonly line: number;
  /** Whether an alias or a merge key led here. */
  readonly isAliased: boolean;
}

type MapNode = YAMLMap<Node, Node | null>;

/** One walk over a document, in its order: builds the plain data, and notes where each value is. */
class Walk {
  readonly places = new Map<string, Place>();
  readonly problems: ConfigProblem[] = [];
  readonly fromFiles = new Set<string>();
  readonly #lineOf: (offset: number) => number;
  readonly #sources: ReferenceSources | null;
  /** The nodes by their anchors. An alias means the last one before it. */
  readonly #anchors = new Map<string, Node>();
  /** The nodes that contain the current one. */
  readonly #open = new Set<Node>();
  #aliasedCount = 0;

  constructor(lineOf: (offset: number) => number, sources: ReferenceSources | null) {
    this.#lineOf = lineOf;
    this.#sources = sources;
  }

  /** Whether the walk has ended early. */
  get isTooLarge(): boolean {
    return this.#aliasedCount > MAX_ALIASED_VALUES;
  }

  read(root: Node | null): unknown {
    return this.#visit(root, { path: [], line: this.#lineOfNode(root), isAliased: false });
  }

  #visit(given: Node | null, position: Position): unknown {
    if (isAlias(given)) {
      const node = this.#resolve(given, position);
      return node === null ? null : this.#visit(node, { ...position, isAliased: true });
    }
    if (given === null) return this.#noteNothing(position);
    if (position.isAliased && !this.#mayExpand(position)) return null;
    if (given.anchor !== undefined && !position.isAliased) this.#anchors.set(given.anchor, given);
    this.#open.add(given);
    const value = this.#readNode(given, position);
    this.#open.delete(given);
    return value;
  }

  #readNode(node: Node, position: Position): unknown {
    if (isMap(node)) {
      this.#note(position, {});
      const entries = new Map<string, unknown>();
      this.#readEntries(node as MapNode, position, entries);
      return Object.fromEntries(entries); // a key may be named `__proto__`
    }
    if (isSeq<Node>(node)) {
      this.#note(position, node.items);
      return node.items.map((item, index) => {
        const line = this.#lineOfNode(item);
        return this.#visit(item, { ...position, path: [...position.path, index], line });
      });
    }
    const value = isScalar(node) ? node.value : null;
    // What a tag such as !!binary makes: bytes have a key for each of them.
    if (typeof value === 'object' && value !== null) {
      this.#report(position, 'found a value with a !tag, expected one without');
      return this.#noteNothing(position);
    }
    this.#note(position, value);
    return typeof value === 'string' ? this.#expand(value, position) : value;
  }

  /** Adds the keys of a map that are not there yet: its own ones, then those that its merge keys bring. */
  #readEntries({ items }: MapNode, position: Position, entries: Map<string, unknown>): void {
    const taken = new Set(entries.keys());
    const own = new Set<string>();
    const merged: { readonly source: Node; readonly line: number }[] = [];
    for (const { key, value } of items) {
      const at = { ...position, line: this.#lineOfNode(key) };
      const name = isScalar(key) ? String(key.value) : '';
      // Through an alias the map is seen again.
      if (own.has(name) && !position.isAliased) this.#reportDuplicate(name, at);
      own.add(name);
      if (isMergeKey(key)) {
        for (const source of this.#mergeSources(value, at)) merged.push({ source, line: at.line });
        continue;
      }
      if (!taken.has(name)) entries.set(name, this.#visit(value, { ...at, path: [...at.path, name] }));
    }
    for (const { source, line } of merged) {
      const at = { ...position, line, isAliased: true };
      if (!this.#mayExpand(at)) return;
      this.#open.add(source);
      this.#readEntries(source as MapNode, at, entries);
      this.#open.delete(source);
    }
  }

  /** The maps that a merge key names: one, or a list. */
  #mergeSources(value: Node | null, position: Position): readonly Node[] {
    const node = isAlias(value) ? this.#resolve(value, position) : value;
    const sources = isSeq<Node>(node) ? node.items : [node];
    return sources.flatMap((source) => {
      const found = isAlias(source) ? this.#resolve(source, position) : source;
      if (isMap(found)) return [found];
      if (!isAlias(source)) {
        this.#report(
          position,
          'found a merge key without keys to merge, expected <<: *anchor of keys with values',
        );
      }
      return [];
    });
  }

  /** Null, with a problem, if there is no such anchor yet, or if the alias is inside of what it stands for. */
  #resolve({ source }: Alias, position: Position): Node | null {
    const node = this.#anchors.get(source);
    if (node === undefined) {
      this.#report(position, 'found an alias without an anchor, expected its &anchor above it');
      return null;
    }
    if (!this.#open.has(node)) return node;
    this.#report(position, 'found an alias inside of its anchor, expected it below');
    return null;
  }

  /** False, with one problem, if aliases have brought too much: a short file can stand for billions of values. */
  #mayExpand(position: Position): boolean {
    this.#aliasedCount += 1;
    if (this.#aliasedCount === MAX_ALIASED_VALUES + 1) {
      const topLevel = { ...position, path: position.path.slice(0, 1) };
      this.#report(topLevel, `aliases bring more than ${MAX_ALIASED_VALUES} values, expected fewer`);
    }
    return !this.isTooLarge;
  }

  #expand(text: string, position: Position): string {
    if (this.#sources === null || !text.includes('${')) return text;
    const { isFromFile, problems, text: expanded } = expandReferences(text, this.#sources);
    for (const problem of problems) this.#report(position, problem);
    if (!isFromFile) return expanded;
    this.fromFiles.add(toKeyPath(position.path));
    // The content would appear as a path in messages.
    if (factsAt(position.path).holds !== 'path') return expanded;
    this.#report(position, `found a \${file:…}, expected the path itself: the gateway reads the file`);
    return text;
  }

  #reportDuplicate(name: string, { path, ...position }: Position): void {
    const hint = name === '<<' ? ', expected <<: [*a, *b]' : '';
    this.#report({ ...position, path: [...path, name] }, `duplicate key${hint}`);
  }

  #noteNothing(position: Position): null {
    this.#note(position, null);
    return null;
  }

  #note({ path, line }: Position, value: unknown): void {
    this.places.set(toKeyPath(path), { line, value });
  }

  #report({ path, line }: Position, text: string): void {
    this.problems.push({ line, keyPath: toKeyPath(path), text });
  }

  #lineOfNode(node: Node | null): number {
    return this.#lineOf(node?.range?.[0] ?? 0);
  }
}

/** A merge key (https://yaml.org/type/merge.html) is not quoted. */
function isMergeKey(key: Node): boolean {
  return isScalar(key) && key.value === '<<' && key.type === 'PLAIN';
}
