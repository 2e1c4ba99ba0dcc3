import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '../../src/config/load.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** The ```yaml blocks of a document that are configurations of the gateway. */
function configsIn(file: string): readonly string[] {
  const blocks = [...read(file).matchAll(/^```yaml\n(.*?)^```/gms)].map(([, text = '']) => text);
  return blocks.filter((text) => /^replicas:/m.test(text));
}

describe('what the documents show works', () => {
  test('the configuration in the README is valid', () => {
    const configs = configsIn('README.md').map((text) =>
      parseConfig(text, { path: 'README.md', env: { VLLM_KEY: 'key' } }),
    );
    expect(configs.map((config) => config.replicas.map(({ name }) => name))).toEqual([['vllm-a', 'vllm-b']]);
  });

  test("the composition's gateway sends requests to its replicas and records to its collector", () => {
    const { services, configs } = parse(read('docker-compose.yml'));
    const config = parseConfig(configs['gateway.yaml'].content, { path: 'docker-compose.yml', env: {} });
    const hosts = [...config.replicas.map(({ url }) => url), config.export.endpoint ?? ''].map(
      (url) => new URL(url).hostname,
    );
    expect(hosts).toEqual(['replica-a', 'replica-b', 'collector']);
    expect(Object.keys(services)).toEqual(expect.arrayContaining(hosts));
  });

  test('the composition waits longer before it kills than a shutdown may take', () => {
    const { services, configs } = parse(read('docker-compose.yml'));
    const { shutdown } = parseConfig(configs['gateway.yaml'].content, {
      path: 'docker-compose.yml',
      env: {},
    });
    const stopGraceMs = Number.parseInt(services.gateway.stop_grace_period, 10) * 1000;
    expect(stopGraceMs).toBeGreaterThan(shutdown.delayMs + shutdown.graceMs + shutdown.flushMs);
  });

  test('the defaults in docs/operations.md are those of the configuration', () => {
    const rows = [...read('docs/operations.md').matchAll(/^\| `(timeouts|limits)\.(\w+)` \| (\w+) \|/gm)];
    const toSection = (section: string) => {
      const entries = rows.filter(([, of]) => of === section).map(([, , key, value]) => `${key}: ${value}`);
      return `${section}: { ${entries.join(', ')} }\n`;
    };
    const replicas = 'replicas: [{ name: a, url: http://127.0.0.1:1 }]\n';
    const toConfig = (text: string) => parseConfig(text, { path: 'docs/operations.md', env: {} });
    const documented = toConfig(replicas + toSection('timeouts') + toSection('limits'));
    expect(rows).toHaveLength(14);
    expect(documented).toEqual(toConfig(replicas));
  });
});
