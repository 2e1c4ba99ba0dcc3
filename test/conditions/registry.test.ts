import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { CONDITIONS, type ConditionDefinition } from '#conditions';
import { readConditions, toAlertName, toAnchor } from '../../scripts/generate/conditions/read-conditions.ts';
import { renderAlertTests } from '../../scripts/generate/conditions/render-alert-tests.ts';
import { renderAlerts } from '../../scripts/generate/conditions/render-alerts.ts';
import { renderConditionDocs } from '../../scripts/generate/conditions/render-docs.ts';
import { renderConditionTable } from '../../scripts/generate/conditions/render-table.ts';
import { toSentence } from '../../src/conditions/to-sentence.ts';

const read = (path: string) => readFile(new URL(`../../${path}`, import.meta.url), 'utf8');
const conditions = readConditions();
const advice = 'run npm run generate';

test('what is made from the registry of conditions is up to date', async () => {
  const table = await read('src/conditions/registry/condition-table.ts');
  expect(table, advice).toBe(renderConditionTable(conditions));
  const alerts = await read('deploy/alerts.yaml');
  expect(alerts, advice).toBe(renderAlerts(alerts, conditions));
  const alertTests = await read('deploy/alerts.test.yaml');
  expect(alertTests, advice).toBe(renderAlertTests(alertTests, conditions));
  const docs = await read('docs/troubleshooting.md');
  expect(docs, advice).toBe(renderConditionDocs(docs, conditions));
});

test.each(conditions)('$id has an alert and a paragraph of its own', async (condition) => {
  const [, alerts = ''] = (await read('deploy/alerts.yaml')).split('# generated: conditions\n');
  const docs = await read('docs/troubleshooting.md');
  expect(alerts.split(`alert: ${toAlertName(condition.id)}\n`)).toHaveLength(2);
  expect(alerts).toContain(`docs/troubleshooting.md#${toAnchor(condition)}\n`);
  expect(docs.split(`### ${condition.title}\n`)).toHaveLength(2);
});

test.each(Object.entries(CONDITIONS) as [string, ConditionDefinition][])(
  'the sentence of %s names its subject, unless there is only one',
  (_, { subject, sentence }) => {
    const isOnlyOne = ['gateway', 'export', 'fleet'].includes(subject);
    expect(sentence.includes('{subject}') || isOnlyOne || subject === 'file').toBe(true);
  },
);

/** They begin at more than one of what they count, or name one of several. */
const NEVER_ONE = ['admin_tokens_refused', 'client_limit_reached', 'tenant_limit_reached', 'replica_backlog'];

test('a sentence about one thing has no plural', () => {
  const wrong = Object.entries(CONDITIONS).filter(([id, { sentence, figures }]) => {
    const ones = Object.fromEntries(Object.keys(figures).map((name) => [name, 1]));
    return (
      !NEVER_ONE.includes(id) && /(?<!of )\b1 [a-z]+s\b/.test(toSentence({ sentence, figures }, 'a', ones))
    );
  });
  expect(wrong.map(([id]) => id)).toEqual([]);
});
