import { readFileSync } from 'node:fs';
import type { DependencyType, IConfiguration, IForbiddenRuleType } from 'dependency-cruiser';

/*
 * The walls of the house: `npm run layers` checks them on resolved files. A room is a folder with one door, a file of
 * its own name. package.json lists the doors under `imports`, so that Node itself refuses every other way in. Every form
 * of import counts: values, types, re-exports, `import()` of a literal, `import('…').Type`.
 */

/** Door → file, as Node resolves it. */
const DOORS: Readonly<Record<string, string>> = JSON.parse(
  readFileSync(new URL('package.json', import.meta.url), 'utf8'),
).imports;

/** What each room may use besides itself: doors, then packages. It stands above those; without a row, on nothing. */
const TABLE = `
#cli              #access/certificates #access/clients #base #base/embedded #base/parsed #cli/admin-client #cli/arguments #cli/command #cli/terminal #config #config/secrets #config/values #gateway #otel/base #otel/record/registry #records #replicas/terms #rollout #simulate pino node:
#gateway          #access/certificates #access/clients #access/jwt #access/limits #admin #background #base #base/embedded #comparisons #conditions #config #config/secrets #fleet #otel #otel/base #otel/collector #otel/export #otel/metrics #otel/otlp #otel/outcome #otel/queue #otel/record/registry #otel/resource #otel/span #proxy #replicas #replicas/control #replicas/shared #replicas/terms #state-dir #wire pino node:
#background       #access/limits #base #otel/record #otel/record/registry #otel/span #proxy #replicas #replicas/control #replicas/shared #state-dir node:
#otel             #otel/base #otel/collector #otel/disk #otel/export #otel/ledger #otel/metrics #otel/otlp #otel/queue #otel/resource #otel/span @opentelemetry/ node:
#admin            #base #base/embedded #comparisons #conditions #config/secrets #config/values #otel/base #otel/outcome #otel/queue #otel/record/registry #otel/span #replicas/control #replicas/drain-state #replicas/terms #wire zod node:
#proxy            #access/jwt #access/limits #base/embedded #config #json #json/bytes #otel/base #otel/files #otel/outcome #otel/record #otel/record/registry #otel/span #replicas #replicas/terms #wire node:
#rollout          #base #base/parsed #cli/admin-client #cli/arguments #cli/command #cli/terminal #config/secrets #config/values #otel/files #state-dir zod node:
#comparisons      #otel/outcome #otel/record/registry #replicas/control #verdict node:
#fleet            #access/limits #replicas/control #replicas/drain-state #replicas/shared #replicas/terms #state-dir @redis/client node:
#otel/metrics     #otel/base #otel/collector #otel/encoding #otel/export #otel/outcome #otel/queue #otel/record/registry @opentelemetry/ node:
#otel/span        #otel/base #otel/collector #otel/export #otel/otlp #otel/outcome #otel/queue #otel/record #otel/record/registry @opentelemetry/ node:
#replicas/control #base #base/parsed #config #otel/base #replicas #replicas/drain-state #replicas/shared #replicas/terms #state-dir #verdict undici node:
#otel/queue       #otel/base #otel/disk #otel/export #otel/ledger #otel/otlp #otel/outcome #otel/record/registry
#records          #otel/disk #otel/ledger #otel/otlp #otel/otlp-json #otel/record/registry node:
#replicas         #replicas/routing #replicas/shared #replicas/terms #wire undici node:
#otel/ledger      #otel/base #otel/disk #otel/otlp #otel/record/registry
#replicas/shared  #replicas/terms #shared-memory node:
#otel/disk        #otel/base #otel/export #otel/files #otel/otlp node:
#cli/arguments    #base #base/parsed #cli/admin-client #cli/command node:
#cli/admin-client #base #base/parsed #cli/command #cli/terminal #config/secrets #config/values undici node:
#cli/terminal     #cli/command #otel/base node:
#replicas/terms   #config
#otel/export      #otel/base #otel/collector #otel/encoding #otel/otlp #otel/otlp-json @opentelemetry/ node:
#otel/collector   #otel/base @opentelemetry/ node:
#otel/resource    #otel/base #otel/files @opentelemetry/ node:
#state-dir        #otel/files node:
#otel/otlp        #otel/encoding #otel/otlp-json #otel/record #otel/record/registry @opentelemetry/ node:
#otel/record      #otel/outcome #otel/record/registry @opentelemetry/ node:
#otel/outcome     #otel/record/registry
#otel/encoding    @opentelemetry/
#json             #json/bytes
#access/certificates #base #config #wire node:
#access/clients   #access/limits #base #config #otel/files node:
#access/jwt       #base #base/parsed #config #otel/base jose node:
#access/limits    #base #config #shared-memory node:
#cli/command      #config #config/secrets
#config           #base #config/secrets #config/values yaml zod node:
#config/secrets   #base node:
#base/embedded,#config/values,#otel/base,#otel/files,#replicas/drain-state,#shared-memory,#simulate,#wire node:
`;

/** The table, read: door → doors and packages. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = Object.fromEntries(
  Object.keys(DOORS)
    .filter((door) => !door.endsWith('*'))
    .map((door) => [
      door,
      new RegExp(`^(?:.*,)?${door}(?:,.*)? +(.*)$`, 'm').exec(TABLE)?.[1]?.split(' ') ?? [],
    ]),
);

/** The folder of a room: its door is the file of the same name in it. */
function folderOf(door: string): string {
  return (DOORS[door] ?? '').replace(/^\.\//, '').replace(/[^/]+$/, '');
}

const FOLDERS = Object.keys(ROOMS).map(folderOf);

function escaped(path: string): string {
  return path.replaceAll('.', '\\.');
}

/** The regular expression of a room's own files, without those of the rooms in its folder. */
function insideOf(door: string): string {
  const folder = folderOf(door);
  const inner = FOLDERS.filter((other) => other !== folder && other.startsWith(folder));
  const rooms = inner.map((other) => escaped(other.slice(folder.length))).join('|');
  return inner.length === 0 ? `^${escaped(folder)}` : `^${escaped(folder)}(?!${rooms})`;
}

/** The regular expression of what a name in the table stands for: the file of a door, a package or a scope of packages. */
function toPattern(name: string): string {
  if (name.startsWith('#')) return `^${escaped((DOORS[name] ?? '').replace(/^\.\//, ''))}$`;
  return `node_modules/${escaped(name)}${name.endsWith('/') ? '' : '/'}`;
}

type Side = { path?: string; pathNot?: string; circular?: boolean; dependencyTypesNot?: DependencyType[] };

function rule(name: string, from: Side, to: Side, comment: string): IForbiddenRuleType {
  return { name, severity: 'error', comment, from, to };
}

function toRules([door, may]: [string, readonly string[]]): readonly IForbiddenRuleType[] {
  const inside = insideOf(door);
  const from = { path: inside, pathNot: PAGE };
  const names = may.filter((name) => name !== 'node:');
  const listed = {
    pathNot: [inside, ...names.map(toPattern)].join('|'),
    ...(may.includes('node:') && { dependencyTypesNot: ['core' as DependencyType] }),
  };
  const byPath = { path: SOURCE, pathNot: inside, dependencyTypesNot: ['aliased-subpath-import' as const] };
  return [
    rule(door, from, listed, 'A room imports itself, and what TABLE lists for it.'),
    rule(`${door} by path`, from, byPath, 'No relative import leaves a room: write the name of the door.'),
  ];
}

const SOURCE = '^(src|otel)/';
const MAIN = '^src/main\\.ts$';
/** The page runs in a browser, which gets its files as they are. */
const PAGE = '^src/admin/dashboard/page/';
/** Touch their process or thread, or read what it has used, its clock, the names of its variables. */
const MAY_TOUCH_PROCESS = [
  'src/main.ts',
  'src/gateway/serving/workers/worker-entry.ts',
  'src/shared-memory/shared-clock.ts',
  'otel/resource/environment.ts',
  'otel/metrics/process-metrics.ts',
];
const NO_TOUCH: Side = { path: SOURCE, pathNot: `^(${MAY_TOUCH_PROCESS.map(escaped).join('|')})$` };
const ONLY_CLI: Side = { pathNot: toPattern('#cli'), dependencyTypesNot: ['core'] };
const RESOLVE = { exportsFields: ['exports'], conditionNames: ['import', 'node', 'types', 'default'] };
const PLACED = [MAIN, ...Object.keys(ROOMS).map(insideOf)].join('|');

export default {
  forbidden: [
    ...Object.entries(ROOMS).flatMap(toRules),
    rule('testkit', { path: '^testkit/' }, { path: '^(test|lab|scripts)/' }, 'Others stand on it.'),
    rule('lab', { path: '^lab/' }, { path: '^(test|scripts)/' }, 'The lab needs no test and no script.'),
    rule('test', { path: '^test/' }, { path: '^lab/' }, 'Tests need no program of the lab.'),
    rule('scripts', { path: '^scripts/' }, { path: '^(lab|test)/' }, 'Scripts need neither lab nor tests.'),
    rule('page', { path: PAGE }, { pathNot: PAGE }, 'A browser gets the files of the page alone.'),
    rule('main', { path: MAIN }, ONLY_CLI, 'main.ts is the process. Everything else is in a command.'),
    rule('no process', NO_TOUCH, { path: '^process$' }, 'What a file needs of its process, it is handed.'),
    rule('no cycle', {}, { circular: true }, 'Files in a cycle are one file, or need a third.'),
    rule('no room', { path: SOURCE, pathNot: PLACED }, {}, 'Name its door here and in package.json.'),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // Reads imports of types too, which are gone once the types are stripped.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: RESOLVE,
  },
} satisfies IConfiguration;
