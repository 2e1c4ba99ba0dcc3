/** A part of the gateway whose mutants are counted together. Paths start at the root of the checkout. */
export interface MutatedRoom {
  readonly name: string;
  /** The sources that are mutated. */
  readonly sources: readonly string[];
  /** Where its tests are: the mirror of the sources first, then tests of more that reach them. Files, or folders. */
  readonly tests: readonly string[];
  /** The score when the program first ran, before tests were added for what it found; null: not known. */
  readonly firstPercent: number | null;
}

/**
 * Not those of whole gateways: they take seconds for each mutant. First the quick ones that know constants: those are
 * mutated when the modules load, and tried on a few files alone.
 */
const VERIFY_TESTS = [
  'test/records/verify/exported-span.test.ts',
  'test/records/verify/finding.test.ts',
  'test/records/verify/report.test.ts',
  'test/records/verify/seq-pages.test.ts',
  'test/records/files/record-file.test.ts',
  'test/records/verify/verify-records.test.ts',
  'test/records/verify/instance-check.test.ts',
  'test/records/verify/backend-sums.test.ts',
  'test/records/verify/verify.test.ts',
];

/** Quick ones first. Those of whole gateways notice nothing more, and take most of the time. */
const WIRE_TESTS = [
  'test/wire/message',
  'test/wire/deadline-clock.test.ts',
  'test/wire/error-body.test.ts',
  'test/shared-memory/shared-limit.test.ts',
  'test/wire/unread-bytes.test.ts',
  'test/wire/message/write-message.test.ts',
  'test/wire/client/http-exchange.test.ts',
  'test/wire/client/request-body.test.ts',
  'test/wire/client/request-input.test.ts',
  'test/wire/upstream',
  'test/wire',
];

/** The rooms that `npm run lab -- mutation` knows: one line each, so that a folder that moves is one edit. */
export const MUTATED_ROOMS: readonly MutatedRoom[] = [
  room(
    'access/limits',
    80.1,
    ['src/access/limits', 'src/fleet/inflight-shares.ts'],
    [
      'test/access/limits',
      'test/fleet/split-inflight.test.ts',
      'test/fleet/client-use.test.ts',
      'test/fleet/inflight-shares.test.ts',
      'test/gateway/clients/tenant-limits.test.ts',
    ],
  ),
  room('records/verify', 70.5, ['src/records/verify', 'src/records/files'], VERIFY_TESTS),
  room(
    'fleet/rules',
    64.7,
    ['src/fleet/rules'],
    ['test/fleet/rules', 'test/fleet/joined-fleet.test.ts', 'test/fleet/wire-format.test.ts'],
  ),
  room(
    'otel/ledger',
    85.5,
    ['otel/ledger', 'otel/otlp/ledger'],
    ['test/otel/ledger', 'test/otel/otlp/ledger', ...VERIFY_TESTS, 'test/otel/queue'],
  ),
  room(
    'otel/queue',
    73.6,
    ['otel/queue'],
    [
      'test/otel/queue/shared/shared.test.ts',
      'test/otel/queue/record-receiver.test.ts',
      'test/otel/queue/encoded-span-store.test.ts',
      'test/otel/queue',
      'test/otel/start-telemetry.test.ts',
    ],
  ),
  room(
    'replicas/routing',
    73.5,
    ['src/replicas/routing', 'src/replicas/ramps/ramp.ts'],
    [
      'test/replicas/routing',
      'test/replicas/ramps/ramp.test.ts',
      'test/replicas/data',
      'test/gateway/replicas/choice.test.ts',
    ],
  ),
  room(
    'replicas/data',
    77.6,
    ['src/replicas/data'],
    [
      'test/replicas/data',
      'test/replicas/routing/why-none.test.ts',
      'test/wire/upstream/upstream-connections.test.ts',
    ],
  ),
  room(
    'proxy/response',
    75.4,
    ['src/proxy/response'],
    ['test/proxy/response', 'test/proxy/endpoints', 'test/gateway/responses/usage.test.ts'],
  ),
  room(
    'proxy/attempt',
    null,
    ['src/proxy/attempt'],
    [
      'test/proxy/attempt',
      'test/gateway/responses/usage.test.ts',
      'test/gateway/replicas/loading-engine.test.ts',
      'test/gateway/replicas/max-inflight.test.ts',
      'test/gateway/replicas/response-owners.test.ts',
    ],
  ),
  room('wire', null, ['src/wire', 'src/shared-memory/shared-limit.ts'], WIRE_TESTS),
];

function room(
  name: string,
  firstPercent: number | null,
  sources: readonly string[],
  tests: readonly string[],
): MutatedRoom {
  return { name, sources, tests, firstPercent };
}
