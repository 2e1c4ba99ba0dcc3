import type { IConfiguration, IForbiddenRuleType } from 'dependency-cruiser';

/*
 * Who may import whom: `npm run layers` checks it on resolved files. Every form of import counts: values, types,
 * re-exports, `import()` of a literal, `import('…').Type`. docs/architecture.md shows the layers.
 */

/** Node's own modules. `node:process` has a rule of its own, below. */
const NODE = 'node:';

interface Room {
  /** The room: `…/` is a folder with all folders in it, `…/*` a folder's own files, `….ts` one file. */
  readonly path: string;
  /** What it may import besides itself: paths as above, or packages. */
  readonly may: readonly string[];
  readonly why: string;
}

/**
 * The rooms of src/ and otel/, top layer first. The innermost room that a file is in decides what it may import; a
 * file that is in none may import nothing.
 */
export const ROOMS: readonly Room[] = [
  {
    path: 'src/main.ts',
    may: ['src/commands/', NODE],
    why: 'main.ts is the process: arguments, environment, signals. Everything else is in a command.',
  },
  {
    path: 'src/commands/',
    may: [
      'src/gateway.ts',
      'src/start-error.ts',
      'src/check-connections/',
      'src/certificates/certificate-files.ts',
      'src/clients/',
      'src/closest-name.ts',
      'src/version.ts',
      'src/config/',
      'src/json/members.ts',
      'src/json/parse-json.ts',
      // Words for reasons, which the admin API gives as codes.
      'src/replicas/reachability.ts',
      'src/replicas/health-decision.ts',
      'src/simulate/',
      'src/replay-trace/',
      'src/verdict/',
      'src/verify-ledger/',
      'otel/encode/',
      // The state of a rollout is a file of ours.
      'otel/disk/regular-file.ts',
      'otel/disk/write-durably.ts',
      'src/replicas/control/state-dir/state-lock.ts',
      'pino',
      'zod',
      'undici',
      NODE,
    ],
    why: 'A command starts a gateway, or asks a running one over its admin API. It never reaches into the proxy.',
  },

  {
    path: 'src/check-connections/',
    may: [
      'src/jwt/read-jwks.ts',
      'src/replicas/control/',
      'src/replicas/data/connections.ts',
      'src/replicas/*',
      'src/fleet/redis/redis-connection.ts',
      'src/serving/settings.ts',
      'src/config/config.ts',
      'src/config/kubernetes-source.ts',
      'otel/',
      NODE,
    ],
    why: 'gateway check --connect tries servers as a gateway would, without being one.',
  },

  // The composition root. Each file has a rule of its own, so that reload-config.ts does not compose.
  {
    path: 'src/gateway.ts',
    may: [
      'src/compose-gateway.ts',
      'src/composition/gateway-collaborators.ts',
      'src/start-error.ts',
      'src/admin/',
      'src/replicas/control/',
      'src/config/config.ts',
      NODE,
    ],
    why: 'gateway.ts starts and stops what compose-gateway.ts has built.',
  },
  {
    path: 'src/compose-gateway.ts',
    may: [
      'src/jwt/',
      'src/composition/',
      'src/reload-config.ts',
      'src/in-turn.ts',
      'src/start-error.ts',
      'src/version.ts',
      'src/admin/',
      'src/certificates/',
      'src/clients/',
      'src/client-limits/',
      'src/serving/',
      'src/fleet/',
      'src/replicas/',
      'src/config/config.ts',
      'src/config/secrets/environment-secrets.ts',
      'otel/',
      NODE,
    ],
    why: 'compose-gateway.ts puts the parts in src/composition/ together.',
  },
  {
    path: 'src/composition/',
    may: [
      'src/jwt/jwks.ts',
      'src/reload-config.ts',
      'src/start-error.ts',
      'src/admin/',
      'src/client-limits/',
      'src/certificates/',
      'src/serving/',
      'src/fleet/',
      'src/replicas/',
      'src/config/secrets/environment-secrets.ts',
      'src/config/config.ts',
      // How much of the limits that all workers share is used.
      'src/http/shared-limit.ts',
      // All workers use one salt for the hashes of prefixes; it is a file in state_dir.
      'src/proxy/record/salt.ts',
      // Which failures are those of a replica.
      'src/proxy/exchange.ts',
      // All workers have one name in Via.
      'src/proxy/request-loop.ts',
      'otel/',
      'pino',
      NODE,
    ],
    why: 'The control plane knows the data plane by src/serving/ only.',
  },
  {
    path: 'src/reload-config.ts',
    may: [
      'src/in-turn.ts',
      'src/start-error.ts',
      'src/admin/',
      'src/replicas/',
      'src/config/',
      'otel/span/',
      NODE,
    ],
    why: 'A reload reads the configuration again and tells the control plane.',
  },
  {
    path: 'src/start-error.ts',
    may: [],
    why: 'Commands and the gateway share this error, so it imports nothing.',
  },

  {
    path: 'src/version.ts',
    may: ['src/embedded.ts', NODE],
    why: 'Commands and the gateway read the version, so it imports neither.',
  },
  {
    path: 'src/embedded.ts',
    may: [NODE],
    why: 'Any layer may have a file that a single executable embeds, so it imports none of them.',
  },

  {
    path: 'src/at-most-once-per-minute.ts',
    may: [],
    why: 'Several layers log with it, so it imports nothing.',
  },

  {
    path: 'src/in-turn.ts',
    may: [],
    why: 'Reloads and new certificates run in turn with it, so it imports nothing.',
  },

  {
    path: 'src/repeated-check.ts',
    may: ['src/in-turn.ts', 'src/start-error.ts'],
    why: 'Files are read again with it, so it imports nothing that reads them.',
  },

  {
    path: 'src/closest-name.ts',
    may: [],
    why: 'Several layers suggest names with it, so it imports nothing.',
  },

  // The control plane.
  {
    path: 'src/certificates/',
    may: [
      'src/in-turn.ts',
      'src/repeated-check.ts',
      'src/start-error.ts',
      'src/config/config.ts',
      'src/http/',
      NODE,
    ],
    why: 'Certificates are read from files for the listeners and the replicas, and know neither.',
  },
  {
    path: 'src/clients/',
    may: [
      'src/in-turn.ts',
      'src/repeated-check.ts',
      'src/start-error.ts',
      'src/config/',
      // How many clients can have limits.
      'src/client-limits/client-limit-table.ts',
      // Reads a file up to a size.
      'otel/disk/regular-file.ts',
      NODE,
    ],
    why: 'The clients are read from a file for the data plane, and know neither it nor the rest of the control plane.',
  },
  {
    path: 'src/admin/',
    may: [
      'src/replicas/',
      'src/verdict/',
      'src/config/config.ts',
      'src/config/secrets/admin-tokens.ts',
      'src/config/values/values.ts',
      'src/http/',
      'src/at-most-once-per-minute.ts',
      'src/closest-name.ts',
      'otel/span/',
      'otel/queue/',
      'otel/clock.ts',
      'otel/encode/',
      'zod',
      'pino',
      'src/embedded.ts',
      NODE,
    ],
    why: 'The admin API never imports the proxy: it must answer when the data plane does not.',
  },
  {
    path: 'src/admin/dashboard/page/',
    may: [],
    why: 'The dashboard page runs in a browser, so it imports its own files only.',
  },
  {
    path: 'src/fleet/',
    may: ['src/client-limits/split-inflight.ts', 'src/replicas/', NODE],
    why: 'Gateways of a fleet share drains, so src/fleet/ knows replicas and nothing above them.',
  },
  {
    path: 'src/fleet/redis/',
    may: ['src/fleet/', 'src/replicas/', '@redis/client', NODE],
    why: 'Only src/fleet/redis/ knows Redis.',
  },

  // What both planes know of the limits of clients.
  {
    path: 'src/client-limits/',
    may: [
      'src/config/config.ts',
      'src/replicas/shared/shared-table.ts',
      'src/replicas/shared/shared-clock.ts',
      'src/start-error.ts',
      NODE,
    ],
    why: 'Both planes count what clients use, so the counts import neither.',
  },

  // Tokens of clients: their keys, which the control plane reads, and their verification in the data plane.
  {
    path: 'src/jwt/',
    may: ['src/config/config.ts', 'src/json/parse-json.ts', 'src/start-error.ts', 'otel/clock.ts', NODE],
    why: 'Both planes deal with tokens, so they import neither.',
  },
  {
    path: 'src/jwt/verify-jwt.ts',
    may: ['src/jwt/', 'src/config/config.ts', 'jose'],
    why: 'Only verify-jwt.ts knows how tokens are signed.',
  },

  // The data plane.
  {
    path: 'src/serving/',
    may: [
      'src/jwt/',
      'src/proxy/',
      'src/client-limits/',
      'src/replicas/data/',
      'src/replicas/shared/',
      'src/replicas/*',
      'src/config/config.ts',
      'src/http/',
      'src/at-most-once-per-minute.ts',
      'otel/',
      NODE,
    ],
    why: 'The data plane runs in any thread, so it never imports the control plane.',
  },
  {
    path: 'src/serving/workers/',
    may: [
      'src/jwt/',
      'src/serving/',
      'src/client-limits/',
      'src/replicas/shared/',
      'src/replicas/*',
      'src/http/',
      'otel/',
      'src/embedded.ts',
      NODE,
    ],
    why: 'A worker is a thread around one data plane. It reaches the proxy through src/serving/ only.',
  },
  {
    path: 'src/proxy/',
    may: [
      'src/jwt/',
      'src/client-limits/',
      'src/replicas/data/',
      'src/replicas/*',
      'src/config/config.ts',
      'src/json/',
      'src/http/',
      'otel/span/',
      'otel/disk/',
      'otel/encode/',
      'pino',
      'src/embedded.ts',
      NODE,
    ],
    why: 'A request leases a replica from the pool. It never imports what decides which replicas there are.',
  },

  // The replicas: the control plane's part, the data plane's part, and what both stand on.
  {
    path: 'src/replicas/control/',
    may: [
      // Replicas are compared with their peers.
      'src/verdict/',
      'src/at-most-once-per-minute.ts',
      'src/in-turn.ts',
      'src/json/members.ts',
      'src/json/parse-json.ts',
      'src/replicas/',
      'src/config/config.ts',
      'src/config/kubernetes-source.ts',
      'src/http/',
      'otel/disk/',
      'otel/clock.ts',
      'undici',
      'pino',
      NODE,
    ],
    why: 'Discovery, probes and drains import no part of the proxy and no record.',
  },
  {
    path: 'src/replicas/data/',
    may: [
      'src/replicas/routing/',
      'src/replicas/shared/',
      'src/replicas/*',
      'src/config/config.ts',
      'src/http/',
      'undici',
      'pino',
      NODE,
    ],
    why: 'The pool runs in every worker, so it never imports src/replicas/control/.',
  },
  {
    path: 'src/replicas/shared/',
    // How turns are counted, which all threads do in one table.
    may: ['src/replicas/*', 'src/replicas/routing/ramp.ts', NODE],
    why: 'Both planes use the tables in shared memory, so the tables import neither.',
  },
  {
    path: 'src/verdict/',
    may: [],
    why: 'A verdict is computed from numbers alone: it imports no clock, no random numbers, no record.',
  },
  {
    path: 'src/replicas/routing/',
    may: [],
    why: 'A balancing policy is a pure function: it imports no clock, no random numbers, no replica.',
  },
  {
    path: 'src/replicas/*',
    may: ['src/config/config.ts'],
    why: 'Both planes exchange these types, so they import neither plane.',
  },

  // Libraries that know nothing of a gateway.
  {
    path: 'src/config/',
    may: ['src/closest-name.ts', 'zod', NODE],
    why: 'Every layer reads the configuration, so it imports none of them.',
  },
  {
    path: 'src/config/load.ts',
    may: ['src/config/', 'zod', 'yaml', NODE],
    why: 'Only load.ts prints YAML.',
  },
  {
    path: 'src/config/yaml/yaml-source.ts',
    may: ['src/config/', 'yaml'],
    why: 'Only yaml-source.ts reads YAML.',
  },
  {
    path: 'src/http/',
    may: [NODE],
    why: 'src/http/ is HTTP/1.1 on sockets. It knows no records and no replicas.',
  },
  {
    path: 'src/json/',
    may: [],
    why: 'src/json/ reads JSON. It imports nothing.',
  },
  {
    path: 'src/simulate/',
    may: [NODE],
    why: 'The simulated replica stands alone: what it shares with the gateway it could not test.',
  },
  {
    path: 'src/replay-trace/',
    may: ['otel/encode/', 'src/file-lines.ts'],
    why: 'The trace export stands alone: it reads records, and no part of the gateway.',
  },

  {
    path: 'src/verify-ledger/',
    may: ['otel/disk/', 'otel/encode/', 'otel/ledger/', 'src/file-lines.ts', NODE],
    why: 'The verification stands alone: it reads records and ledgers, and no part of the gateway.',
  },
  {
    path: 'src/file-lines.ts',
    may: [],
    why: 'Programs that read files of records share it.',
  },

  // otel/ is a library of its own and never imports src/. Lower rooms never import higher ones:
  // encode ← export ← disk ← ledger ← queue ← span, metrics ← start-telemetry.
  {
    path: 'otel/start-telemetry.ts',
    may: ['otel/', '@opentelemetry/', NODE],
    why: 'start-telemetry.ts puts the rooms of otel/ together.',
  },
  {
    path: 'otel/span/',
    may: ['otel/queue/', 'otel/export/', 'otel/encode/', 'otel/*', '@opentelemetry/', NODE],
    why: 'Spans are encoded and queued. They know no metrics and no files.',
  },
  {
    path: 'otel/metrics/',
    may: ['otel/queue/', 'otel/export/', 'otel/encode/', 'otel/*', '@opentelemetry/', NODE],
    why: 'Metrics are counted from records. They know no spans and no files.',
  },
  {
    path: 'otel/resource/',
    may: ['otel/disk/', 'otel/*', '@opentelemetry/', NODE],
    why: 'The resource is the same for records, metrics and admin actions. It knows none of them.',
  },
  {
    path: 'otel/ledger/',
    may: ['otel/disk/', 'otel/encode/', 'otel/*', NODE],
    why: 'The ledger is told what became of records. It knows no queue, and the verification reads it without a gateway.',
  },
  {
    path: 'otel/queue/',
    may: ['otel/ledger/', 'otel/disk/', 'otel/export/', 'otel/encode/', 'otel/*', NODE],
    why: 'The queue holds encoded spans. It knows neither the SDK nor what makes a span.',
  },
  {
    path: 'otel/disk/',
    may: ['otel/export/', 'otel/encode/', 'otel/*', NODE],
    why: 'Record files and the spool hold encoded spans. They know no queue.',
  },
  {
    path: 'otel/export/',
    may: ['otel/encode/', 'otel/*', '@opentelemetry/', NODE],
    why: 'An export sends one batch. It does not know where the batch was taken from.',
  },
  {
    path: 'otel/encode/',
    may: ['otel/*', '@opentelemetry/'],
    why: 'A record is encoded without input or output.',
  },
  {
    path: 'otel/*',
    may: [],
    why: 'All rooms of otel/ share these files, so they import nothing.',
  },
];

/** Many layers describe themselves with these types, so the modules are below all of them, but their code is not. */
const TYPES_ONLY: IForbiddenRuleType = {
  name: 'types only',
  comment: 'Import only types from this module: write `import type`.',
  severity: 'error',
  from: {
    path: toPattern([
      'src/proxy/',
      'src/admin/',
      'src/replicas/',
      'src/serving/',
      'src/gateway.ts',
      'src/compose-gateway.ts',
      'src/composition/',
    ]),
  },
  to: {
    path: toPattern(['src/config/config.ts', 'otel/encode/request-record.ts']),
    dependencyTypesNot: ['type-only'],
  },
};

const NO_PROCESS: IForbiddenRuleType = {
  name: 'no process',
  comment:
    'main.ts touches the process, and worker-entry.ts its thread; process-metrics.ts reads what the process has used, environment.ts the names of variables, shared-clock.ts the clock of all threads. Everything else is handed what it needs.',
  severity: 'error',
  from: {
    path: '^(src|otel)/',
    pathNot: toPattern([
      'src/main.ts',
      'src/serving/workers/worker-entry.ts',
      // Whichever variables of OpenTelemetry are set.
      'otel/resource/environment.ts',
      'otel/metrics/process-metrics.ts',
      'src/replicas/shared/shared-clock.ts',
    ]),
  },
  to: { path: '^process$' },
};

const NO_CYCLE: IForbiddenRuleType = {
  name: 'no cycle',
  comment: 'Two files that import each other, if only types, are one file or need a third.',
  severity: 'error',
  from: {},
  to: { circular: true },
};

const NO_ROOM: IForbiddenRuleType = {
  name: 'no room',
  comment: 'This file is in no room: add one to layers.config.ts.',
  severity: 'error',
  from: { path: '^(src|otel)/', pathNot: toPattern(ROOMS.map(({ path }) => path)) },
  to: {},
};

/** The regular expression of what any of these names stands for, as dependency-cruiser resolves it. */
function toPattern(names: readonly string[]): string {
  return names
    .map((name) => {
      const escaped = name.replaceAll('.', '\\.');
      if (!/^(src|otel)\//.test(name)) return `node_modules/${escaped}${name.endsWith('/') ? '' : '/'}`;
      if (name.endsWith('/*')) return `^${escaped.slice(0, -1)}[^/]+$`;
      return name.endsWith('/') ? `^${escaped}` : `^${escaped}$`;
    })
    .join('|');
}

/** Whether a room is inside another, whose rule then leaves it out. */
function isInside(inner: string, outer: string): boolean {
  const folder = outer.replace(/\*$/, '');
  return inner !== outer && folder.endsWith('/') && inner.startsWith(folder);
}

function toRule({ path, may, why }: Room): IForbiddenRuleType {
  const inner = ROOMS.map((room) => room.path).filter((other) => isInside(other, path));
  return {
    name: path,
    comment: why,
    severity: 'error',
    from: { path: toPattern([path]), ...(inner.length > 0 && { pathNot: toPattern(inner) }) },
    to: {
      pathNot: toPattern([path, ...may.filter((name) => name !== NODE)]),
      ...(may.includes(NODE) && { dependencyTypesNot: ['core'] }),
    },
  };
}

export default {
  forbidden: [...ROOMS.map(toRule), NO_ROOM, TYPES_ONLY, NO_PROCESS, NO_CYCLE],
  options: {
    doNotFollow: { path: 'node_modules' },
    // Reads imports of types too, which are gone once the types are stripped.
    tsPreCompilationDeps: true,
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types', 'default'],
    },
  },
} satisfies IConfiguration;
