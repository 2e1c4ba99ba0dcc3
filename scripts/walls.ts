import type { DependencyType, IForbiddenRuleType } from 'dependency-cruiser';

/** Door → its file, as package.json lists it under `imports`. */
type Doors = Readonly<Record<string, string>>;

/** Door → the doors and packages that its room may use. */
type Rooms = Readonly<Record<string, readonly string[]>>;

/** One side of a rule of dependency-cruiser. */
export type Side = {
  path?: string;
  pathNot?: string;
  circular?: boolean;
  dependencyTypesNot?: DependencyType[];
};

/** The files that are divided into rooms, as a regular expression. */
export const SOURCE = '^(src|otel)/';

/** The page runs in a browser, which gets its files as they are. */
export const PAGE = '^src/admin/dashboard/page/';

/** The rules that a table of rooms stands for. */
interface Walls {
  /** The regular expression of a room's own files, without those of the rooms in its folder. */
  readonly insideOf: (door: string) => string;
  /** The regular expression of what a name in the table stands for: the file of a door, a package, a scope of packages. */
  readonly toPattern: (name: string) => string;
  /** Two for each room: what it may use, and that it uses it by name. */
  readonly rules: readonly IForbiddenRuleType[];
}

/** A path as a regular expression that matches nothing else. */
export function escaped(path: string): string {
  return path.replaceAll('.', '\\.');
}

/** A rule whose violation is an error. */
export function rule(name: string, from: Side, to: Side, comment: string): IForbiddenRuleType {
  return { name, severity: 'error', comment, from, to };
}

/** Turns a table of rooms into rules of dependency-cruiser. */
export function createWalls(doors: Doors, rooms: Rooms): Walls {
  // Door → the folder of its room: its door is the file of the same name in it.
  const folders = Object.entries(doors)
    .filter(([door]) => door in rooms)
    .map(([door, file]) => [door, escaped(file.replace(/^\.\/|[^/]+$/g, ''))] as const);

  const insideOf = (door: string) => {
    const folder = folders.find(([name]) => name === door)?.[1] ?? '';
    const inner = folders.filter(([, other]) => other !== folder && other.startsWith(folder));
    const not = inner.map(([, other]) => other.slice(folder.length)).join('|');
    return `^${folder}${inner.length === 0 ? '' : `(?!${not})`}`;
  };

  const toPattern = (name: string) => {
    if (name.startsWith('#')) return `^${escaped((doors[name] ?? '').replace(/^\.\//, ''))}$`;
    return `node_modules/${escaped(name)}${name.endsWith('/') ? '' : '/'}`;
  };

  const toRules = ([door, may]: [string, readonly string[]]): readonly IForbiddenRuleType[] => {
    const inside = insideOf(door);
    const from = { path: inside, pathNot: PAGE };
    const names = may.filter((name) => name !== 'node:');
    const listed = {
      pathNot: [inside, ...names.map(toPattern)].join('|'),
      ...(may.includes('node:') && { dependencyTypesNot: ['core' as DependencyType] }),
    };
    const byPath = { path: SOURCE, pathNot: inside, dependencyTypesNot: ['aliased-subpath-import' as const] };
    return [
      rule(door, from, listed, 'A room imports itself, and what the table lists for it.'),
      rule(`${door} by path`, from, byPath, 'No relative import leaves a room: write the name of the door.'),
    ];
  };

  return { insideOf, toPattern, rules: Object.entries(rooms).flatMap(toRules) };
}
