import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { metricsIn, PROMETHEUS_NAMES } from '#testkit/reading/prometheus-names.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly volumes?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly secrets?: readonly string[];
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly {
    readonly refId: string;
    readonly expr: string;
    readonly datasource: { readonly uid: string };
  }[];
}

/** A query of the dashboard that is not a panel's. */
interface Variable {
  readonly name: string;
  readonly definition?: string;
}

describe('the composition', () => {
  const { services, secrets } = parse(read('docker-compose.yml')) as {
    readonly services: Record<string, Service>;
    readonly secrets: Readonly<Record<string, { readonly environment: string }>>;
  };

  test('pins every image to a version', () => {
    const images = Object.values(services).map(({ image }) => image);
    expect(images.filter((image) => !/:v?\d+\.\d+\.\d+$/.test(image))).toEqual([]);
  });

  test('mounts only files that are there', () => {
    const sources = Object.values(services).flatMap(({ volumes = [] }) =>
      volumes.map((volume) => volume.split(':')[0] ?? ''),
    );
    const missing = sources.filter((source) => source.startsWith('./') && !existsSync(join(ROOT, source)));
    expect(missing).toEqual([]);
  });

  test('gives Prometheus the token that only reads, which every gateway knows', () => {
    const { scrape_configs } = parse(read('deploy/prometheus/prometheus.yml'));
    const [name = ''] = services.prometheus?.secrets ?? [];
    expect(scrape_configs[0].authorization).toEqual({ credentials_file: `/run/secrets/${name}` });
    expect(secrets).toEqual({ [name]: { environment: 'SVC_READ_TOKEN' } });
    const gateways = Object.values(services).filter(({ environment }) => environment?.SVC_ADMIN_TOKEN);
    expect(gateways).toHaveLength(3);
    for (const { environment } of gateways) {
      expect(environment?.SVC_READ_TOKEN).toMatch(/^\$\{SVC_READ_TOKEN:\?/);
    }
  });

  test('has the services that Prometheus and Grafana ask', () => {
    const { scrape_configs } = parse(read('deploy/prometheus/prometheus.yml'));
    const { datasources } = parse(read('deploy/grafana/provisioning/datasources/datasources.yml'));
    const asked: readonly string[] = [
      ...scrape_configs.flatMap((job: { static_configs: readonly { targets: readonly string[] }[] }) =>
        job.static_configs.flatMap(({ targets }) => targets.map((target) => `http://${target}`)),
      ),
      ...datasources.map(({ url }: { url: string }) => url),
    ];
    expect(Object.keys(services)).toEqual(expect.arrayContaining(asked.map((url) => new URL(url).hostname)));
  });
});

describe("Grafana's dashboard", () => {
  const { panels, uid, annotations, templating } = JSON.parse(
    read('deploy/grafana/dashboards/spangate.json'),
  ) as {
    readonly panels: readonly Panel[];
    readonly uid: string;
    readonly annotations: { readonly list: readonly { readonly name: string; readonly expr: string }[] };
    readonly templating: { readonly list: readonly Variable[] };
  };
  const queries = [...panels.flatMap(({ targets = [] }) => targets), ...annotations.list].map(
    ({ expr }) => expr,
  );

  test('has panels of their own ids, that lie beside each other and not upon each other', () => {
    expect(uid).toBe('spangate');
    expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
    const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
      Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
    );
    expect(new Set(cells).size).toBe(cells.length);
    expect(Math.max(...panels.map(({ gridPos }) => gridPos.x + gridPos.w))).toBe(24);
  });

  test('asks for metrics that the gateway has; test/e2e/prometheus.test.ts puts the questions', () => {
    const asked = queries.flatMap((expr) => [...metricsIn(expr)]);
    expect(asked.length).toBeGreaterThan(20);
    expect(asked.filter((metric) => !PROMETHEUS_NAMES.has(metric))).toEqual([]);
  });

  test('uses its variables in every query, and names no job of its own', () => {
    const [, ...labels] = ['datasource', 'job', 'instance', 'replica', 'model', 'tenant'];
    expect(templating.list.map(({ name }) => name)).toEqual(['datasource', ...labels]);
    for (const expr of queries) {
      const selectors = expr.match(/(?<=[a-z])\{.*?\}/g) ?? [];
      expect(selectors, expr).toHaveLength(metricsIn(expr).length);
      for (const selector of selectors) expect(selector).toMatch(/^\{job=~"\$job",instance=~"\$instance"/);
    }
    const bySelector = (label: string, variable: string) =>
      queries.filter((expr) => expr.includes(`by (${label})`) && !expr.includes(`${label}=~"$${variable}"`));
    expect(bySelector('gateway_replica', 'replica')).toEqual([]);
    expect(bySelector('gen_ai_request_model', 'model')).toEqual([]);
    expect(bySelector('gateway_tenant', 'tenant')).toEqual([]);
    const sources = panels.flatMap(({ datasource, targets = [] }) => [
      ...(datasource === undefined ? [] : [datasource.uid]),
      ...targets.map((target) => target.datasource.uid),
    ]);
    expect(new Set(sources)).toEqual(new Set([`$\{datasource}`]));
  });

  test('leaves no panel without a question', () => {
    const mute = panels.filter(({ type, targets = [] }) => type !== 'row' && targets.length === 0);
    expect(mute.map(({ title }) => title)).toEqual([]);
  });
});
