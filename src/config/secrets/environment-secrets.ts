import { isDeepStrictEqual } from 'node:util';
import {
  ADMIN_ROLES,
  type AdminRole,
  type AdminToken,
  readAdminTokens,
  TOKEN_VARIABLES,
} from './admin-tokens.ts';
import { type Environment, readSecret } from './read-secret.ts';

/** The variables with headers for the collector: for all signals, or for one. */
const HEADER_VARIABLES = {
  general: 'OTEL_EXPORTER_OTLP_HEADERS',
  traces: 'OTEL_EXPORTER_OTLP_TRACES_HEADERS',
  metrics: 'OTEL_EXPORTER_OTLP_METRICS_HEADERS',
} as const;

type Signal = keyof typeof HEADER_VARIABLES;

const SIGNALS = Object.keys(HEADER_VARIABLES) as Signal[];

const SALT_VARIABLE = 'SVC_HASH_SALT';

/** The secrets that variables hold, or files that variables name with `_FILE`. */
export interface EnvironmentSecrets {
  /** The bearer tokens of the admin API, strongest role first. */
  readonly tokens: readonly AdminToken[];
  /** The salt of the prefix hashes; null: the salt in state_dir. */
  readonly hashSalt: string | null;
  /** Headers for the collector, as the variables of OpenTelemetry have them; empty: none. */
  readonly collectorHeaders: Readonly<Record<Signal, string>>;
}

/** No secrets. */
export const NO_SECRETS: EnvironmentSecrets = {
  tokens: [],
  hashSalt: null,
  collectorHeaders: { general: '', traces: '', metrics: '' },
};

/**
 * Reads all secrets of the environment. `warnings` are about tokens, for the operator. Rejects with a SecretError. Neither
 * contains a secret.
 */
export async function readEnvironmentSecrets(
  env: Environment,
): Promise<{ readonly secrets: EnvironmentSecrets; readonly warnings: readonly string[] }> {
  const { tokens, warnings } = await readAdminTokens(env);
  const { text: hashSalt } = await readSecret(SALT_VARIABLE, env);
  const collectorHeaders = { ...NO_SECRETS.collectorHeaders };
  for (const signal of SIGNALS) {
    collectorHeaders[signal] = (await readSecret(HEADER_VARIABLES[signal], env)).text.trim();
  }
  return { secrets: { tokens, hashSalt: hashSalt === '' ? null : hashSalt, collectorHeaders }, warnings };
}

/** The names of the files whose contents have changed: those that a reload applies, and those that need a restart. */
export function findChangedSecrets(
  before: EnvironmentSecrets,
  after: EnvironmentSecrets,
): { readonly changed: readonly string[]; readonly needsRestart: readonly string[] } {
  const ofRole = ({ tokens }: EnvironmentSecrets, role: AdminRole) =>
    tokens.filter((token) => token.role === role);
  const roles = ADMIN_ROLES.filter((role) => !isDeepStrictEqual(ofRole(before, role), ofRole(after, role)));
  const signals = SIGNALS.filter(
    (signal) => before.collectorHeaders[signal] !== after.collectorHeaders[signal],
  );
  const variables = [
    ...roles.map((role) => TOKEN_VARIABLES[role]),
    ...signals.map((signal) => HEADER_VARIABLES[signal]),
  ];
  // Only files can change while the process runs.
  return {
    changed: variables.map((variable) => `${variable}_FILE`),
    needsRestart: before.hashSalt === after.hashSalt ? [] : [`${SALT_VARIABLE}_FILE`],
  };
}
