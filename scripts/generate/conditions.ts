import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { readConditions } from './conditions/read-conditions.ts';
import { renderAlertTests } from './conditions/render-alert-tests.ts';
import { renderAlerts } from './conditions/render-alerts.ts';
import { renderConditionDocs } from './conditions/render-docs.ts';
import { renderConditionTable } from './conditions/render-table.ts';

/*
 * Generates from src/conditions/registry/conditions.yaml (`npm run generate`): the table beside it, the alerts of
 * deploy/alerts.yaml with their tests, and the paragraphs of docs/troubleshooting.md. A test fails when they are out of date.
 */

const root = join(import.meta.dirname, '../..');
const conditions = readConditions();
await writeFile(join(root, 'src/conditions/registry/condition-table.ts'), renderConditionTable(conditions));
for (const [file, render] of [
  ['deploy/alerts.yaml', renderAlerts],
  ['deploy/alerts.test.yaml', renderAlertTests],
  ['docs/troubleshooting.md', renderConditionDocs],
] as const) {
  const path = join(root, file);
  await writeFile(path, render(await readFile(path, 'utf8'), conditions));
}
