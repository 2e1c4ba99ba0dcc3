import { readFileSync } from 'node:fs';
import type { IConfiguration } from 'dependency-cruiser';
import { createWalls, escaped, PAGE, rule, type Side, SOURCE } from './scripts/walls.ts';

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
#cli              #access/certificates #access/clients #base #base/embedded #base/parsed #base/zone-clock #cli/admin-client #cli/arguments #cli/command #cli/terminal #config #config/addresses #config/secrets #config/values #gateway #otel/base #otel/record/registry #records #records/files #replicas/health-state #replicas/reachability #rollout #simulate #statement pino node:
#gateway          #access/certificates #access/clients #access/jwt #access/limits #admin #background #base #base/embedded #comparisons #conditions #config #config/secrets #fleet #history #otel #otel/base #otel/collector #otel/export #otel/files #otel/ledger #otel/metrics #otel/otlp #otel/outcome #otel/queue #otel/queue/shared #otel/record/registry #otel/resource #otel/span #proxy #proxy/entry #rehearsal #replicas #replicas/control #replicas/discovery #replicas/drain-state #replicas/health-state #replicas/probes #replicas/reachability #replicas/registry #replicas/shared #replicas/stored-responses #replicas/terms #rollout-board #shadow #shared-memory #state-dir #statement #wire #wire/client #wire/upstream pino node:
#shadow           #base/parsed #json #otel/span #proxy #replicas #shared-memory #verdict/pairs #wire/message #wire/upstream node:
#background       #access/limits #base #base/parsed #otel/base #otel/record #otel/record/registry #otel/span #proxy #replicas/gpu-time #replicas/probes #replicas/registry #replicas/shared #state-dir node:
#otel             #otel/base #otel/collector #otel/disk #otel/export #otel/ledger #otel/metrics #otel/otlp #otel/queue #otel/queue/shared #otel/resource #otel/span @opentelemetry/ node:
#admin            #base #base/embedded #base/parsed #base/zone-clock #comparisons #conditions #config/secrets #config/values #history #otel/base #otel/outcome #otel/queue #otel/record/registry #otel/span #replicas/discovery #replicas/drain-state #replicas/drains #replicas/health-state #replicas/probes #replicas/reachability #replicas/registry #replicas/routing #replicas/terms #rollout-board #rollout-board/facts #wire #wire/client zod node:
#proxy            #access/limits #base/embedded #config #json #json/bytes #json/strings #otel/base #otel/outcome #otel/record #otel/record/registry #otel/span #proxy/entry #replicas #replicas/gpu-time #replicas/reachability #replicas/stored-responses #replicas/terms #shared-memory #wire #wire/client #wire/message #wire/upstream node:
#otel/metrics     #otel/base #otel/collector #otel/encoding #otel/export #otel/outcome #otel/queue #otel/record #otel/record/registry @opentelemetry/ node:
#history          #base #base/embedded #otel/base #otel/ledger #otel/otlp #otel/outcome #otel/record/registry #otel/span node:
#otel/span        #otel/base #otel/collector #otel/export #otel/otlp #otel/outcome #otel/queue #otel/record #otel/record/registry @opentelemetry/ node:
#rollout          #base #base/parsed #cli/admin-client #cli/arguments #cli/command #cli/terminal #config/secrets #config/values #otel/files #rollout-board/facts #state-dir zod node:
#rollout-board    #base/parsed #otel/base #rollout-board/facts #state-dir zod node:
#comparisons      #base/parsed #otel/outcome #otel/record/registry #replicas/discovery #replicas/registry #verdict #verdict/blocks #verdict/judgement #verdict/pairs zod node:
#fleet            #access/limits #base/parsed #otel/base #replicas/drain-state #replicas/drains #replicas/stored-responses #replicas/terms #state-dir @redis/client node:
#otel/queue       #otel/base #otel/disk #otel/export #otel/ledger #otel/otlp #otel/outcome #otel/queue/shared #otel/record/registry
#statement        #base #base/parsed #base/zone-clock #config/secrets #otel/ledger #otel/otlp #otel/record/registry #records/files zod node:
#records          #otel/ledger #otel/otlp #otel/otlp-json #otel/record/registry #records/files node:
#records/files    #otel/disk #otel/otlp #otel/otlp-json node:
#replicas/control #base #config #otel/base #replicas #replicas/discovery #replicas/drains #replicas/health #replicas/health-state #replicas/probes #replicas/reachability #replicas/registry #replicas/routing #replicas/shared #replicas/stored-responses #replicas/terms #state-dir #verdict/blocks node:
#replicas/discovery #base #base/parsed #config #otel/base #replicas #replicas/health #replicas/probes #replicas/reachability #replicas/registry #replicas/shared #replicas/terms undici node:
#replicas/health  #config #otel/base #replicas/health-state #replicas/probes #replicas/ramps #replicas/registry #replicas/routing #replicas/shared #replicas/silence #verdict #verdict/blocks node:
#replicas/probes  #base/parsed #otel/base #replicas/reachability #replicas/registry #replicas/terms undici node:
#replicas/registry #config #replicas #replicas/drain-state #replicas/drains #replicas/gpu-time #replicas/health-state #replicas/ramps #replicas/reachability #replicas/routing #replicas/shared #replicas/terms undici node:
#replicas/drains  #base/parsed #otel/base #replicas/drain-state #replicas/ramps #replicas/shared #state-dir node:
#otel/ledger      #otel/base #otel/disk #otel/otlp #otel/record/registry
#cli/arguments    #base #base/parsed #cli/admin-client #cli/command node:
#replicas         #otel/base #replicas/gpu-time #replicas/health-state #replicas/ramps #replicas/reachability #replicas/route #replicas/routing #replicas/shared #replicas/silence #replicas/stored-responses #replicas/terms #wire #wire/upstream undici node:
#otel/disk        #otel/base #otel/export #otel/files #otel/otlp node:
#cli/admin-client #base #base/parsed #cli/command #cli/terminal #config/addresses #config/secrets undici node:
#replicas/shared  #replicas/gpu-time #replicas/health-state #replicas/ramps #replicas/reachability #replicas/silence #shared-memory
#cli/terminal     #cli/command #otel/base node:
#otel/export      #otel/base #otel/collector #otel/encoding #otel/otlp #otel/otlp-json @opentelemetry/ node:
#access/clients   #access/limits #base #config #otel/base #otel/files node:
#replicas/routing #replicas/route #replicas/terms
#rehearsal        #replicas/terms node:
#replicas/terms   #config
#otel/otlp        #otel/encoding #otel/otlp-json #otel/record #otel/record/registry @opentelemetry/ node:
#access/certificates #base #config #otel/base #wire/client node:
#proxy/entry      #access/jwt #access/limits #config #wire/message node:
#access/jwt       #base #base/parsed #config #otel/base jose node:
#access/limits    #base #config #otel/base #shared-memory node:
#cli/command      #config #config/secrets
#otel/record      #otel/outcome #otel/record/registry @opentelemetry/
#config           #base #config/addresses #config/secrets #config/values yaml zod node:
#wire/client      #shared-memory #wire #wire/message node:
#wire/upstream    #wire #wire/message node:
#otel/collector   #otel/base @opentelemetry/ node:
#rollout-board/facts #otel/base zod
#otel/resource    #otel/base #otel/files @opentelemetry/ node:
#state-dir        #otel/base #otel/files node:
#replicas/gpu-time,#replicas/health-state,#replicas/ramps,#replicas/silence #shared-memory
#replicas/stored-responses #shared-memory node:
#otel/outcome     #otel/record/registry
#json             #json/bytes #json/strings
#config/secrets   #base node:
#otel/encoding    @opentelemetry/
#base,#base/embedded,#base/zone-clock,#config/addresses,#otel/files,#replicas/drain-state,#replicas/route,#shared-memory,#simulate,#wire/message node:
#verdict/pairs    #verdict #verdict/evidence #verdict/judgement
#verdict          #verdict/blocks #verdict/evidence #verdict/judgement
#verdict/judgement #verdict/evidence
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

const { insideOf, toPattern, rules } = createWalls(DOORS, ROOMS);

const MAIN = '^src/main\\.ts$';
/** Touch their process or thread, or read what it has used, its clock, the names of its variables. */
const MAY_TOUCH_PROCESS = escaped(
  'src/main.ts|src/gateway/serving/workers/worker-entry.ts|src/shared-memory/shared-clock.ts|otel/resource/environment.ts|otel/metrics/process-metrics.ts',
);
const NO_TOUCH: Side = { path: SOURCE, pathNot: `^(${MAY_TOUCH_PROCESS})$` };
const ONLY_CLI: Side = { pathNot: toPattern('#cli'), dependencyTypesNot: ['core'] };
const OUTSIDE_FLEET: Side = { path: SOURCE, pathNot: insideOf('#fleet') };
const AT_ONCE: Side = { path: toPattern('#fleet'), dependencyTypesNot: ['dynamic-import', 'type-only'] };
const RESOLVE = { exportsFields: ['exports'], conditionNames: ['import', 'node', 'types', 'default'] };
const PLACED = [MAIN, ...Object.keys(ROOMS).map(insideOf)].join('|');

export default {
  forbidden: [
    ...rules,
    rule('testkit', { path: '^testkit/' }, { path: '^(test|lab|scripts)/' }, 'Others stand on it.'),
    rule('lab', { path: '^lab/' }, { path: '^(test|scripts)/' }, 'The lab needs no test and no script.'),
    rule('test', { path: '^test/' }, { path: '^lab/' }, 'Tests need no program of the lab.'),
    rule('scripts', { path: '^scripts/' }, { path: '^(lab|test)/' }, 'Scripts need neither lab nor tests.'),
    rule('page', { path: PAGE }, { pathNot: PAGE }, 'A browser gets the files of the page alone.'),
    rule('main', { path: MAIN }, ONLY_CLI, 'main.ts is the process. Everything else is in a command.'),
    rule('no process', NO_TOUCH, { path: '^process$' }, 'What a file needs of its process, it is handed.'),
    rule('no fleet', OUTSIDE_FLEET, AT_ONCE, 'Load it with import(): Redis takes 10 MB of who has no fleet.'),
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
