import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { metricsIn, PROMETHEUS_NAMES } from '#testkit/reading/prometheus-names.ts';
import { promtool, requirePrometheus } from '#testkit/servers/real-prometheus.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

interface Rule {
  readonly alert?: string;
  readonly record?: string;
  readonly expr: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

const { groups } = parse(read('deploy/alerts.yaml')) as {
  readonly groups: readonly { readonly rules: readonly Rule[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const alerts = rules.flatMap((rule) => (rule.alert === undefined ? [] : [{ ...rule, alert: rule.alert }]));

/** The paragraphs of docs/troubleshooting.md, by the anchor that GitHub gives to their heading. */
const paragraphs = new Map(
  read('docs/troubleshooting.md')
    .split(/^### /m)
    .slice(1)
    .map((paragraph) => {
      const [heading = '', ...lines] = paragraph.split('\n');
      const anchor = heading
        .toLowerCase()
        .replaceAll(/[^a-z0-9 _-]/g, '')
        .replaceAll(' ', '-');
      return [anchor, lines.join('\n').split(/^## /m)[0] ?? ''];
    }),
);

describe('the alerts', () => {
  test('are valid, and fire when they must and only then', async (context) => {
    await requirePrometheus(context);
    expect(await promtool(['check', 'rules', join(ROOT, 'deploy/alerts.yaml')])).toContain('SUCCESS');
    expect(await promtool(['test', 'rules', join(ROOT, 'deploy/alerts.test.yaml')])).toContain('SUCCESS');
  });

  test.for(alerts)(
    '$alert is tested, has a severity, and says what to do',
    ({ alert, labels, annotations }) => {
      expect(read('deploy/alerts.test.yaml')).toContain(`alertname="${alert}"`);
      expect(['critical', 'warning', 'notice']).toContain(labels?.severity);
      expect(annotations?.summary).toBeTruthy();
      expect(annotations?.description).toBeTruthy();
      const [file = '', anchor = ''] = annotations?.runbook_url?.split('#') ?? [];
      expect(file).toBe('docs/troubleshooting.md');
      expect(paragraphs.get(anchor)?.length).toBeGreaterThan(100);
    },
  );

  test('ask for metrics that the gateway has', () => {
    const asked = rules.flatMap(({ expr }) => metricsIn(expr));
    expect(asked.length).toBeGreaterThan(20);
    expect(asked.filter((metric) => !PROMETHEUS_NAMES.has(metric))).toEqual([]);
  });

  test('use recorded series that a rule records', () => {
    const recorded = new Set(rules.map(({ record }) => record));
    const used = alerts.flatMap(({ expr }) => expr.match(/\bspangate:[\w:]+/g) ?? []);
    expect(used.filter((name) => !recorded.has(name))).toEqual([]);
    expect(used.length).toBeGreaterThan(0);
  });

  test('are loaded by the Prometheus of the composition', () => {
    const { services } = parse(read('docker-compose.yml'));
    const { rule_files } = parse(read('deploy/prometheus/prometheus.yml'));
    const mounts = services.prometheus.volumes as readonly string[];
    expect(rule_files).toEqual(['/etc/prometheus/alerts.yaml']);
    expect(mounts).toContain('./deploy/alerts.yaml:/etc/prometheus/alerts.yaml:ro');
  });
});

test('every paragraph is of an alert', () => {
  const anchors = alerts.map(({ annotations }) => annotations?.runbook_url?.split('#')[1]);
  expect([...paragraphs.keys()].toSorted()).toEqual(anchors.toSorted());
});
