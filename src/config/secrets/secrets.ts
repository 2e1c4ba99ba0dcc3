/*
 * What the variables of the environment hold in secret, or the files that they name: the tokens of the admin API with
 * their roles, the salt of the prefix hashes, headers for the collector.
 *
 * It never knows the configuration file.
 * Begin with environment-secrets.ts; admin-tokens.ts says what a role allows.
 */

export {
  type AdminToken,
  allows,
  isOwnReplica,
  type NeededRole,
  readAdminTokens,
  TOKEN_VARIABLES,
} from './admin-tokens.ts';
export {
  type EnvironmentSecrets,
  findChangedSecrets,
  readEnvironmentSecrets,
} from './environment-secrets.ts';
export { type Environment, readSecretFile, SecretError } from './read-secret.ts';
