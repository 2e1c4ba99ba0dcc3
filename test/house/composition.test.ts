import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { METRICS } from '#otel/metrics/metric-names.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly volumes?: readonly string[];
}

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

describe('the composition', () => {
  const { services } = parse(read('docker-compose.yml')) as { readonly services: Record<string, Service> };

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
  const { panels, uid } = JSON.parse(read('deploy/grafana/dashboards/spangate.json')) as {
    readonly panels: readonly Panel[];
    readonly uid: string;
  };

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
    const known = Object.values(METRICS).map(({ name, unit }) => {
      const prometheusName = name.replaceAll('.', '_');
      return unit === 's' ? `${prometheusName}_seconds` : prometheusName;
    });
    const isKnown = (metric: string) =>
      known.includes(metric.replace(/_(?:total|bucket|count|sum)$/, '')) || known.includes(metric);
    const asked = panels.flatMap(({ targets = [] }) =>
      targets.flatMap(({ expr }) => expr.match(/\b(?:http|gen_ai|gateway|otel)_\w+(?=[{[])/g) ?? []),
    );
    expect(asked.length).toBeGreaterThan(20);
    expect(asked.filter((metric) => !isKnown(metric))).toEqual([]);
  });

  test('leaves no panel without a question', () => {
    const mute = panels.filter(({ type, targets = [] }) => type !== 'row' && targets.length === 0);
    expect(mute.map(({ title }) => title)).toEqual([]);
  });
});
