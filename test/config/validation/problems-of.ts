import { ConfigError } from '../../../src/config/config-error.ts';
import { parseConfig } from '../../../src/config/load.ts';

/** Where the texts come from. */
const SOURCE = {
  path: '/etc/spangate/gateway.yaml',
  env: { KEY: 'sk-secret-1', BROKEN_KEY: 'sk\nsecret', HEADER: 'bearer sk-secret' },
};

/** A list of one replica. */
export const REPLICA = 'replicas: [{ name: a, url: "http://a:8000" }]\n';

/** What is reported of a text, line by line, without the path of the file. */
export function problemsOf(text: string): string[] {
  try {
    parseConfig(text, SOURCE);
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replaceAll(`${SOURCE.path}:`, '').split('\n');
    throw error;
  }
  return [];
}
