import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { createPaint, tableWidthOf } from '#cli/terminal';
import { printJson } from '../print-json.ts';
import { openHistories, reportLacks, toSpanQuery } from './history-gateways.ts';
import { sumUsage, type Usage } from './usage-sums.ts';
import { toUsageCsv, toUsageTable } from './usage-text.ts';

/**
 * `gateway usage`: sums the requests of a span, of all gateways that are named. What is missing is said on standard error.
 * Throws a UsageError or what a call throws: without one of the gateways there is no sum.
 */
export async function usage({ args, env, stdout, stderr }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.usage.options);
  if (values.csv && values.json) throw new UsageError("options '--csv' and '--json' exclude each other");
  const { query, time } = toSpanQuery(values);
  const { by = 'tenant', step, tenant, client, model, replica, endpoint } = values;
  const asked = Object.entries({
    ...query,
    by,
    step,
    tenant,
    client,
    model,
    replica,
    endpoint,
    limit: '99999',
  });
  const params = new URLSearchParams(
    asked.filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  const clients = await openHistories(values, { env, stderr });
  const answers = await Promise.all(
    clients.map(async (each) => ({
      baseUrl: each.baseUrl,
      answer: await each.call('GET', `/admin/usage?${params}`),
    })),
  );
  const summed = sumUsage(answers, step !== undefined);
  reportLacks(stderr, answers, time);
  if (values.json) printJson(stdout, answers.length === 1 ? answers[0]?.answer : toJson(summed, answers));
  else if (values.csv) stdout.write(toUsageCsv(summed));
  else {
    const look = { paint: createPaint(stdout, env), width: tableWidthOf(stdout) };
    stdout.write(toUsageTable(summed, time, look));
  }
  return 0;
}

/** In the form of the answer of one gateway, with the answers that were summed. */
function toJson({ by, rows, total, hasSteps: _, ...span }: Usage, answers: readonly object[]) {
  return {
    ...span,
    by,
    rows: rows.map(({ group, ...row }) => ({
      ...row,
      ...Object.fromEntries(by.map((name, index) => [name, group[index] ?? null])),
    })),
    total,
    gateways: answers,
  };
}
