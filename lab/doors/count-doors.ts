import { globSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import ts from 'typescript';

/** A room: a folder with one door. Paths start at the root of the checkout. */
export interface Room {
  /** The name of its door, such as `#wire`. */
  readonly door: string;
  /** The file of the door, such as `src/wire/wire.ts`. */
  readonly file: string;
  /** Its folder, with a slash at the end. */
  readonly folder: string;
  /** How many names the door exports. */
  readonly exportCount: number;
}

/** An import of a file of `src/` or `otel/` from outside its room. */
export interface OutsideImport {
  /** The file that imports. */
  readonly from: string;
  /** The file that is imported. */
  readonly to: string;
}

/** What is counted of a checkout. */
export interface DoorCounts {
  readonly rooms: readonly Room[];
  /** The files of `src/` and `otel/` that other rooms import. */
  readonly doors: readonly string[];
  /** Imports by tests, the lab and the test kit that pass by a door. Tests of a room's inside may reach their own mirror. */
  readonly reachingInside: readonly OutsideImport[];
  /** Lines of code in `src/` and `otel/`, those of comments and empty ones too. */
  readonly lineCount: number;
  /** Lines of `layers.config.ts`. */
  readonly layerLineCount: number;
}

const SOURCES = ['src/**/*.ts', 'otel/**/*.ts'];
const USERS = ['test/**/*.ts', 'testkit/**/*.ts', 'lab/**/*.ts', 'scripts/**/*.ts'];

/** Counts the doors of the checkout in this folder. */
export function countDoors(root: string): DoorCounts {
  const read = (file: string) => readFileSync(join(root, file), 'utf8');
  const imports: Readonly<Record<string, string>> = JSON.parse(read('package.json')).imports;
  const rooms = Object.entries(imports)
    .map(([door, path]) => ({ door, file: path.replace(/^\.\//, '') }))
    .filter(({ file }) => /^(src|otel)\//.test(file))
    .map(
      ({ door, file }): Room => ({
        ...{ door, file, folder: `${dirname(file)}/` },
        exportCount: countExports(read(file)),
      }),
    );
  const sources = globSync(SOURCES, { cwd: root });
  const roomOf = (file: string) => longest(rooms.filter(({ folder }) => file.startsWith(folder)));
  const outside = (files: readonly string[]): readonly OutsideImport[] =>
    files.flatMap((from) =>
      importsOf(read(from))
        .map((specifier) => resolve(specifier, from, imports))
        .filter((to) => to !== null && /^(src|otel)\//.test(to))
        .map((to) => ({ from, to: to ?? '' }))
        .filter(({ to }) => roomOf(from)?.folder !== roomOf(to)?.folder),
    );
  const reachingInside = outside(globSync(USERS, { cwd: root }).toSorted()).filter(({ from, to }) => {
    const room = roomOf(to);
    return room !== undefined && to !== room.file && !isMirror(from, room);
  });
  return {
    rooms,
    doors: [...new Set(outside(sources).map(({ to }) => to))].toSorted(),
    reachingInside,
    lineCount: sources.reduce((sum, file) => sum + countLines(read(file)), 0),
    layerLineCount: countLines(read('layers.config.ts')),
  };
}

/** `test/wire/…` is the mirror of `src/wire/…`, `test/otel/…` of `otel/…`. */
function isMirror(from: string, { folder }: Room): boolean {
  return from.startsWith(`test/${folder.replace(/^src\//, '')}`);
}

function longest(rooms: readonly Room[]): Room | undefined {
  return rooms.toSorted((a, b) => b.folder.length - a.folder.length)[0];
}

/** The file that a specifier names; null if it is a package. */
function resolve(specifier: string, from: string, imports: Readonly<Record<string, string>>): string | null {
  if (specifier.startsWith('.')) return posix.normalize(posix.join(dirname(from), specifier));
  return imports[specifier]?.replace(/^\.\//, '') ?? null;
}

/** The specifiers of a file: of imports, re-exports, `import()` of a literal, and `import('…').Type`. */
function importsOf(code: string): readonly string[] {
  return ts.preProcessFile(code, true, true).importedFiles.map(({ fileName }) => fileName);
}

/** How many names a file exports. A door exports by name alone. */
export function countExports(code: string): number {
  const source = ts.createSourceFile('door.ts', code, ts.ScriptTarget.Latest, true);
  return source.statements.reduce((sum, statement) => {
    if (ts.isExportDeclaration(statement)) {
      const { exportClause } = statement;
      return sum + (exportClause && ts.isNamedExports(exportClause) ? exportClause.elements.length : 1);
    }
    if (!ts.canHaveModifiers(statement)) return sum;
    const isExported = ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (isExported !== true) return sum;
    return sum + (ts.isVariableStatement(statement) ? statement.declarationList.declarations.length : 1);
  }, 0);
}

function countLines(text: string): number {
  return text.split('\n').length - 1;
}
