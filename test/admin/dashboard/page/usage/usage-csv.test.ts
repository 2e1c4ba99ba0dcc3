import { expect, test } from 'vitest';
import { makeRow, makeUsage } from '#testkit/dashboard/made-history.ts';
import { toCsv } from '../../../../../src/admin/dashboard/page/usage/usage-csv.js';
import { toUsageCsv } from '../../../../../src/cli/history/usage.ts';
import { sumUsage } from '../../../../../src/cli/history/usage-sums.ts';

const USAGE = makeUsage({
  by: ['tenant', 'model'],
  rows: [
    makeRow({ tenant: 'acme', model: 'm' }, { costs: { EUR: 1.5, USD: 2 } }),
    makeRow({ tenant: '=HYPERLINK("http://evil.example","x")', model: 'a,"b"\r\nc' }),
    makeRow({ tenant: null, model: null }, { other: true, e2e_ms: { mean: null, p50: null, p95: null } }),
  ],
});

test('the file is that of `gateway usage --csv`', () => {
  const fromCommand = toUsageCsv(sumUsage([{ baseUrl: 'http://gw.example', answer: USAGE }], false));
  // The command sorts by size, and so does the API.
  expect(toCsv(USAGE).split('\r\n').toSorted()).toEqual(fromCommand.split('\r\n').toSorted());
});

test('a name that looks like a formula is none for a spreadsheet, and keeps its quotes and line breaks', () => {
  const csv = toCsv(USAGE);
  expect(csv).toContain(`"'=HYPERLINK(""http://evil.example"",""x"")"`);
  expect(csv).toContain('"a,""b""\r\nc"');
});

test('each currency has a column', () => {
  const [head] = toCsv(USAGE).split('\r\n');
  expect(head).toContain('cost_EUR,cost_USD');
});
