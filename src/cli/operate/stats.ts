import { openAdmin } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import type { Invocation } from '#cli/command';
import { createPaint, type Paint, toTable } from '#cli/terminal';
import { printJson } from '../print-json.ts';

/** `gateway stats`: shows the export counters of a running gateway, as a table or JSON. */
export async function stats({ args, env, stdout }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.stats.options);
  const client = await openAdmin(values, env);
  const answer = await client.call('GET', '/admin/stats');
  if (values.json) printJson(stdout, answer);
  else stdout.write(toStatsTable(answer, createPaint(stdout, env)));
  return 0;
}

function toStatsTable(answer: unknown, paint: Paint): string {
  const rows = Object.entries(answer as object).filter(([, value]) => typeof value === 'number');
  return toTable(['COUNTER', 'VALUE'], rows, { paint });
}
