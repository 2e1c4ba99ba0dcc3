/*
 * The configuration: one schema gives the type, the JSON Schema, the reference page and the messages about
 * mistakes. Also secrets, the file of clients, and what a reload changes.
 *
 * It never knows who uses a setting.
 * Begin with schema.ts, then load.ts; effective-config.ts is what all other rooms get.
 */

export { parseClientsFile } from './clients-file.ts';
export { ConfigError, type ConfigProblem } from './config-error.ts';
export {
  type ApiClientConfig,
  type Config,
  type Engine,
  type FurtherEndpoint,
  type ReplicaConfig,
  type ServiceConfig,
  type TenantLimitsConfig,
  toConfig,
} from './effective-config.ts';
export type { Environment } from './environment.ts';
export { toFileProblem } from './file-problem.ts';
export type { KubernetesSource } from './kubernetes-source.ts';
export {
  type LoadedConfigFile,
  loadConfigText,
  parseConfig,
  printApiClients,
  printConfigFile,
} from './load.ts';
export { planReload } from './reload-plan.ts';
export { apiClient } from './schema/clients.ts';
export type { ConfigFile } from './schema.ts';
export {
  type AdminRole,
  type AdminToken,
  allows,
  isOwnReplica,
  type NeededRole,
  readAdminTokens,
  TOKEN_VARIABLES,
} from './secrets/admin-tokens.ts';
export {
  type EnvironmentSecrets,
  findChangedSecrets,
  readEnvironmentSecrets,
} from './secrets/environment-secrets.ts';
export { SecretError } from './secrets/secret-file.ts';
export { isLoopback } from './validation/check-addresses.ts';
export {
  DURATION_PATTERN,
  type ListenAddress,
  parseBaseUrl,
  parseDuration,
  printDuration,
  printListenAddress,
} from './values/values.ts';
