/*
 * The configuration file: one schema gives the settings, the JSON Schema, the reference page, the messages about mistakes
 * and what a reload applies. Also the file of clients.
 *
 * It never knows who uses a setting.
 * Begin with schema.ts, then load.ts; schema/keys.ts says how a key becomes a setting,
 * schema/ which keys need a restart; reload-plan.ts compares two configurations.
 */

export { parseClientsFile } from './clients-file.ts';
export { ConfigError } from './config-error.ts';
export { ConfigFiles } from './config-files.ts';
export { createClientEntry, type LoadedConfig, loadConfig, parseConfig, printConfig } from './load.ts';
export { planReload } from './reload-plan.ts';
export { type Config, hasHealthChecks, type SecuredReplica } from './schema.ts';
