import { attributesOf, type Registry, type RegistryAttribute } from './registry.ts';
import { GROUP, metricsOf, RECORD_PREFIX } from './registry-groups.ts';

/** docs/record.md with new tables and the same text between them. Throws if the place of a table is missing. */
export function renderRecordDocs(current: string, registry: Registry): string {
  return fillTables(current, 'docs/record.md', [
    ['fields', renderTable('field', fieldsOf(registry, 'registry.gateway.record'))],
    ['beyond', renderTable('field', fieldsOf(registry, GROUP.record))],
    ['request span', renderTable('attribute', ownAttributes(registry, GROUP.requestSpan))],
    ['gen_ai', renderTable('attribute', ownAttributes(registry, GROUP.genAi))],
    ['gen_ai latest', renderTable('attribute', ownAttributes(registry, GROUP.genAiLatest))],
    ['operation span', renderTable('attribute', ownAttributes(registry, GROUP.operationSpan))],
    ['attempt span', renderTable('attribute', ownAttributes(registry, GROUP.attemptSpan))],
    ['attempt event', renderTable('attribute', ownAttributes(registry, GROUP.failedAttemptEvent))],
    ['ledger', renderTable('attribute', ownAttributes(registry, GROUP.ledgerSpan))],
    ['admin action', renderTable('attribute', ownAttributes(registry, GROUP.adminActionSpan))],
    ['rollout step', renderTable('attribute', ownAttributes(registry, GROUP.rolloutStepSpan))],
  ]);
}

/** docs/metrics.md with new tables, likewise. */
export function renderMetricDocs(current: string, registry: Registry): string {
  return fillTables(current, 'docs/metrics.md', [
    ['metrics', renderMetricTable(registry)],
    ['buckets', renderBucketTable(registry)],
  ]);
}

function fillTables(current: string, file: string, tables: readonly (readonly [string, string])[]): string {
  let text = current;
  for (const [name, table] of tables) {
    const place = new RegExp(`(<!-- generated: ${name} -->\n).*?(<!-- end -->\n)`, 's');
    if (!place.test(text)) throw new Error(`${file} has no place for the table ${name}`);
    text = text.replace(place, (_, begin: string, end: string) => `${begin}\n${table}\n${end}`);
  }
  return text;
}

function renderMetricTable(registry: Registry): string {
  const rows = metricsOf(registry).map(({ id, name, instrument, unit, brief }) => [
    `\`${name}\``,
    instrument,
    `\`${unit}\``,
    brief,
    attributesOf(registry, id)
      .map((attribute) => `\`${attribute.name}\``)
      .join(', '),
  ]);
  return toTable(['metric', 'instrument', 'unit', 'meaning', 'attributes'], rows);
}

function renderBucketTable(registry: Registry): string {
  const rows = metricsOf(registry).flatMap(({ name, buckets }) =>
    buckets === undefined ? [] : [[`\`${name}\``, buckets.join(', ')]],
  );
  return toTable(['histogram', 'upper bounds, in seconds'], rows);
}

const ownAttributes = (registry: Registry, id: string) => registry.groups.get(id)?.attributes ?? [];

/** Names of the record's fields are without the prefix. */
function fieldsOf(registry: Registry, id: string): readonly RegistryAttribute[] {
  return ownAttributes(registry, id).map((attribute) => ({
    ...attribute,
    name: attribute.name.slice(RECORD_PREFIX.length) + (attribute.type === 'doubles' ? '.<key>' : ''),
  }));
}

const DOCUMENTED_TYPES: Readonly<Record<RegistryAttribute['type'], string>> = {
  string: 'string',
  int: 'int',
  double: 'double',
  bool: 'bool',
  strings: 'string[]',
  doubles: 'double',
};

function renderTable(kind: string, attributes: readonly RegistryAttribute[]): string {
  const hasUnits = attributes.some(({ unit }) => unit !== '');
  const heads = [kind, 'type', ...(hasUnits ? ['unit'] : []), 'meaning', 'present'];
  const rows = attributes.map(({ name, type, unit, brief, note, presence }) => [
    `\`${name}\``,
    DOCUMENTED_TYPES[type],
    ...(hasUnits ? [unit] : []),
    [brief, note].filter((text) => text !== '').join(' '),
    presence,
  ]);
  return toTable(heads, rows);
}

function toTable(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  return [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}
