import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readRegistry } from './registry.ts';
import { renderAttributes } from './render-attributes.ts';
import { renderClientMetrics } from './render-client-metrics.ts';
import {
  renderDashboardFields,
  renderMetricTable,
  renderNames,
  renderRecordSchema,
  renderRecordType,
} from './render-names.ts';
import { renderLedgerDocs, renderMetricDocs, renderRecordDocs } from './render-registry-docs.ts';

/*
 * Generates from otel/record/registry/ (`npm run generate`): otel/record/registry/attribute-names.ts, otel/record/registry/request-record.ts,
 * otel/record/record-attributes.ts, otel/metrics/metric-table.ts, otel/metrics/client-metric-rows.ts, src/admin/record-schema.ts, src/admin/dashboard/page/records/record-fields.js, and the
 * tables of docs/record.md, docs/metrics.md and docs/internals/ledger-form.md. A test fails when they are out of date.
 */

const root = join(import.meta.dirname, '../..');
const registry = readRegistry();
await writeFile(join(root, 'otel/record/registry/attribute-names.ts'), renderNames(registry));
await writeFile(join(root, 'otel/record/registry/request-record.ts'), renderRecordType(registry));
await writeFile(join(root, 'otel/record/record-attributes.ts'), renderAttributes(registry));
await writeFile(join(root, 'src/admin/record-schema.ts'), renderRecordSchema(registry));
await writeFile(
  join(root, 'src/admin/dashboard/page/records/record-fields.js'),
  renderDashboardFields(registry),
);
await writeFile(join(root, 'otel/metrics/metric-table.ts'), renderMetricTable(registry));
await writeFile(join(root, 'otel/metrics/client-metric-rows.ts'), renderClientMetrics(registry));
for (const [file, render] of [
  ['docs/record.md', renderRecordDocs],
  ['docs/metrics.md', renderMetricDocs],
  ['docs/internals/ledger-form.md', renderLedgerDocs],
] as const) {
  const docs = join(root, file);
  await writeFile(docs, render(await readFile(docs, 'utf8'), registry));
}
