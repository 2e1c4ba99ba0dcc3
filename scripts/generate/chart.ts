import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { toFormattedJson } from './config-docs.ts';

/**
 * Puts into the chart what helm cannot read outside of it: the alerts and the dashboard, whose sources are in deploy/, and
 * the schema of the configuration, so that helm checks `config` when it renders the chart.
 */

const ROOT = join(import.meta.dirname, '../..');
const DEPLOY = join(ROOT, 'deploy');
const CHART = join(DEPLOY, 'helm/spangate');
const FILES = join(CHART, 'files');

await mkdir(FILES, { recursive: true });
await copyFile(join(DEPLOY, 'alerts.yaml'), join(FILES, 'alerts.yaml'));
await copyFile(join(DEPLOY, 'grafana/dashboards/spangate.json'), join(FILES, 'dashboard.json'));
const config: unknown = JSON.parse(await readFile(join(ROOT, 'docs/config.schema.json'), 'utf8'));
const values = JSON.parse(await readFile(join(DEPLOY, 'helm/values.schema.json'), 'utf8'));
values.properties.config = toChartSchema(config);
await writeFile(join(CHART, 'values.schema.json'), toFormattedJson(values));

/** The parts of the schema of gateway.yaml that are changed here. */
interface ConfigSchema {
  readonly $schema: string;
  readonly required: readonly string[];
  readonly properties: {
    readonly gateway: { readonly properties: Readonly<Record<'tls' | 'admin_tls', { required?: string[] }>> };
  };
}

/**
 * The schema of gateway.yaml as that of a value. What is missing altogether is told by templates/_helpers.tpl, which adds
 * the cert and the key of listeners, too.
 */
function toChartSchema(schema: unknown): object {
  const { $schema: _, required: __, ...rest } = withGoPatterns(schema) as ConfigSchema;
  const { tls, admin_tls: adminTls } = rest.properties.gateway.properties;
  for (const listener of [tls, adminTls]) delete listener.required;
  return rest;
}

/** The schema with patterns that helm, which is written in Go, can read. */
function withGoPatterns(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(withGoPatterns);
  if (typeof node !== 'object' || node === null) return node;
  const toGo = ([key, value]: [string, unknown]) =>
    key === 'pattern' && typeof value === 'string' ? toGoPattern(value) : withGoPatterns(value);
  return Object.fromEntries(Object.entries(node).map((entry) => [entry[0], toGo(entry)]));
}

/** The same pattern, or one that allows more: Go's cannot look ahead, and repeat at most 1,000 times. */
function toGoPattern(pattern: string): string {
  return pattern
    .replaceAll(/\(\?[=!][^()]*\)/g, '')
    .replaceAll(/\{(\d+),(\d+)\}/g, (repeat, least, most) => (Number(most) > 1_000 ? `{${least},}` : repeat));
}
