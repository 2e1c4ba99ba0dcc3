import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { attributesOf, readRegistry } from '../../scripts/generate/registry.ts';
import { metricsOf } from '../../scripts/generate/registry-groups.ts';

/** What the conventions say: facts of their YAML at a commit that the file names. */
interface Facts {
  readonly commit: string;
  readonly metrics: Readonly<Record<string, MetricFacts>>;
  /** The type of each attribute, or its well-known values. */
  readonly attributes: Readonly<Record<string, string | { readonly values: readonly string[] }>>;
}

interface MetricFacts {
  readonly instrument: string;
  readonly unit: string;
  readonly buckets?: readonly number[];
  readonly attributes: Readonly<Record<string, string>>;
}

const read = (name: string): Facts =>
  JSON.parse(readFileSync(new URL(`../fixtures/semconv/${name}.json`, import.meta.url), 'utf8'));

const FACTS = { pinned: read('gen-ai-1.41.0'), latest: read('gen-ai-latest') };
const registry = readRegistry();
const METRICS = metricsOf(registry).filter(({ name }) => name.startsWith('gen_ai.'));

/** The conventions that define a metric: of the client's side, those with whose names it exists. */
function sourcesOf({ client }: (typeof METRICS)[number]): readonly Facts[] {
  if (client === undefined) return [FACTS.pinned];
  return (['pinned', 'latest'] as const).flatMap((names) => (client[names] ? FACTS[names] : []));
}

describe('a metric of GenAI is as the conventions define it', () => {
  test.each(METRICS.map((metric) => [metric.name, metric] as const))('%s', (name, metric) => {
    const sources = sourcesOf(metric);
    expect(sources.length).toBeGreaterThan(0);
    const attributes = attributesOf(registry, metric.id);
    for (const { metrics } of sources) {
      const fact = metrics[name];
      expect(fact).toMatchObject({ instrument: metric.instrument, unit: metric.unit });
      expect(metric.buckets).toEqual(fact?.buckets);
      const defined = Object.keys(fact?.attributes ?? {});
      const own = attributes.filter((attribute) => !attribute.name.startsWith('gateway.'));
      expect(defined).toEqual(expect.arrayContaining(own.map((attribute) => attribute.name)));
      const required = defined.filter((attribute) => fact?.attributes[attribute] === 'required');
      expect(own.map((attribute) => attribute.name)).toEqual(expect.arrayContaining(required));
    }
  });
});

test('a metric of the client has every attribute that the conventions know', () => {
  const ofClient = METRICS.filter(({ client }) => client !== undefined);
  expect(ofClient.length).toBeGreaterThan(0);
  for (const metric of ofClient) {
    for (const { metrics } of sourcesOf(metric)) {
      expect(
        attributesOf(registry, metric.id)
          .map(({ name }) => name)
          .toSorted(),
      ).toEqual(Object.keys(metrics[metric.name]?.attributes ?? {}).toSorted());
    }
  }
});

test('every value of an attribute in the table of metrics is one of the conventions', () => {
  for (const metric of METRICS) {
    for (const { attributes = {} } of metric.client?.values ?? []) {
      for (const [attribute, value] of Object.entries(attributes)) {
        for (const facts of sourcesOf(metric))
          expect(facts.attributes[attribute]).toMatchObject({ values: expect.arrayContaining([value]) });
      }
    }
  }
});

/** The names that no text of the conventions has, or not with this type; the registry says why they are sent. */
const OUR_OWN = /^gen_ai\.(?:latency\.|usage\.cost$)/;

/** The type of the conventions by that of the wire. */
const TYPES: Readonly<Record<string, string>> = { bool: 'boolean', strings: 'string[]' };

describe('an attribute of GenAI is as the conventions define it', () => {
  const groups = [
    ['registry.gateway.gen_ai', FACTS.pinned],
    ['registry.gateway.gen_ai_latest', FACTS.latest],
  ] as const;
  const rows = groups.flatMap(([id, facts]) =>
    attributesOf(registry, id)
      .filter(({ name }) => name.startsWith('gen_ai.') && !OUR_OWN.test(name))
      .map((attribute) => [attribute.name, attribute.type, facts] as const),
  );

  test.each(rows)('%s: %s', (name, type, facts) => {
    const fact = facts.attributes[name];
    expect(typeof fact === 'object' ? 'string' : fact).toBe(TYPES[type] ?? type);
  });
});
