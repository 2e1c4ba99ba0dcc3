import { attributesOf, type Registry, type RegistryAttribute } from './registry.ts';
import { dialectsOf, GROUP, metricsOf, RECORD_PREFIX } from './registry-groups.ts';

/** docs/record.md with new tables and the same text between them. Throws if the place of a table is missing. */
export function renderRecordDocs(current: string, registry: Registry): string {
  return fillTables(current, 'docs/record.md', [
    ['fields', renderTable('field', fieldsOf(registry, 'registry.gateway.record'))],
    ['beyond', renderTable('field', fieldsOf(registry, GROUP.record))],
    ['request span', renderTable('attribute', ownAttributes(registry, GROUP.requestSpan))],
    ['gen_ai', renderTable('attribute', ownAttributes(registry, GROUP.genAi))],
    ['gen_ai latest', renderTable('attribute', ownAttributes(registry, GROUP.genAiLatest))],
    [
      'dialects',
      renderTable(
        'attribute',
        dialectsOf(registry).flatMap(({ id }) => ownAttributes(registry, id)),
      ),
    ],
    ['operation span', renderTable('attribute', ownAttributes(registry, GROUP.operationSpan))],
    ['attempt span', renderTable('attribute', ownAttributes(registry, GROUP.attemptSpan))],
    ['attempt event', renderTable('attribute', ownAttributes(registry, GROUP.failedAttemptEvent))],
    ['admin action', renderTable('attribute', ownAttributes(registry, GROUP.adminActionSpan))],
    ['shadow span', renderTable('attribute', ownAttributes(registry, GROUP.shadowSpan))],
    ['rollout step', renderTable('attribute', ownAttributes(registry, GROUP.rolloutStepSpan))],
  ]);
}

/** docs/internals/ledger-form.md with a new table, likewise. */
export function renderLedgerDocs(current: string, registry: Registry): string {
  const table = renderTable('attribute', ownAttributes(registry, GROUP.ledgerSpan));
  return fillTables(current, 'docs/internals/ledger-form.md', [
    ['ledger', table.replaceAll(/\]\((?=[a-z-]+\.md)/g, '](../')],
  ]);
}

/** docs/metrics.md with new tables, likewise. */
export function renderMetricDocs(current: string, registry: Registry): string {
  return fillTables(current, 'docs/metrics.md', [
    ['attribute sets', renderSetTable()],
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

/** Attributes that many metrics have, under a name for docs/metrics.md. */
const ATTRIBUTE_SETS: Readonly<Record<string, readonly string[]>> = {
  client: [
    ...['gen_ai.operation.name', 'gen_ai.provider.name', 'gen_ai.request.model', 'gen_ai.response.model'],
    ...['server.address', 'server.port'],
  ],
  server: ['gen_ai.operation.name', 'gen_ai.provider.name', 'gen_ai.request.model', 'gateway.replica'],
  exporter: ['otel.component.type', 'otel.component.name', 'server.address', 'server.port'],
};

const toList = (names: readonly string[]) => names.map((name) => `\`${name}\``).join(', ');

function renderSetTable(): string {
  const rows = Object.entries(ATTRIBUTE_SETS).map(([set, names]) => [`*${set}*`, toList(names)]);
  return toTable(['set', 'attributes'], rows);
}

/** Names of attributes, the first set among them by its name. */
function renderNamesOf(names: readonly string[]): string {
  const set = Object.entries(ATTRIBUTE_SETS).find(([, members]) =>
    members.every((name) => names.includes(name)),
  );
  if (set === undefined) return toList(names);
  const [title, members] = set;
  const others = names.filter((name) => !members.includes(name));
  return [`*${title}*`, ...(others.length === 0 ? [] : [toList(others)])].join(', ');
}

/** A unit in braces, or 1, only says what is counted, which the name says too. */
const renderUnit = (unit: string) => (/^[{1]/.test(unit) ? '' : `\`${unit}\``);

function renderMetricTable(registry: Registry): string {
  const rows = metricsOf(registry).map(({ id, name, instrument, unit, brief }) => [
    `\`${name}\``,
    instrument,
    renderUnit(unit),
    brief,
    renderNamesOf(attributesOf(registry, id).map((attribute) => attribute.name)),
  ]);
  return toTable(['metric', 'instrument', 'unit', 'meaning', 'attributes'], rows);
}

/** Histograms with the same bounds share a row. */
function renderBucketTable(registry: Registry): string {
  const bounds = Map.groupBy(
    metricsOf(registry).filter(({ buckets }) => buckets !== undefined),
    ({ unit, buckets = [] }) => `${renderUnit(unit)} | ${renderBounds(buckets)}`,
  );
  const rows = [...bounds].map(([columns, metrics]) => [
    metrics.map(({ name }) => `\`${name}\``).join(', '),
    columns,
  ]);
  return toTable(['histograms', 'unit', 'upper bounds'], rows);
}

/** Bounds, or the first and the last one if each is the same multiple of the one before. */
function renderBounds(bounds: readonly number[]): string {
  const [first = 0, second = 0] = bounds;
  const ratio = second / first;
  const isGeometric = bounds.every((bound, index) => Math.abs(bound / (first * ratio ** index) - 1) < 1e-9);
  return isGeometric ? `${first} × ${ratio}ⁿ, up to ${bounds.at(-1)}` : bounds.join(', ');
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

/** What is always there has no condition, and a repetition of a field has that of the field. */
function renderTable(kind: string, attributes: readonly RegistryAttribute[]): string {
  const rows = attributes.map(({ name, type, brief, note, presence }) => {
    const field = /^Same as (`[^`]+`)\.$/.exec(brief)?.[1];
    if (field !== undefined && ['always', `same as ${field}`].includes(presence))
      return [`\`${name}\``, '', `as ${field}`, ''];
    const meaning = [brief, note].filter((text) => text !== '').join(' ');
    const condition = presence === 'always' ? '' : presence.replace(/^same as /, 'with ');
    return [`\`${name}\``, DOCUMENTED_TYPES[type], meaning, condition];
  });
  return toTable([kind, 'type', 'meaning', 'present'], rows);
}

function toTable(heads: readonly string[], rows: readonly (readonly string[])[]): string {
  return [heads, heads.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |\n`).join('');
}
