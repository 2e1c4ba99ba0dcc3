import { memberOf } from '#base/parsed';
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
  const names = typeof answer === 'object' && answer !== null ? Object.keys(answer) : [];
  const rows = names.flatMap((name): [string, number][] => {
    const value = memberOf(answer, name);
    return typeof value === 'number' ? [[name, value]] : [];
  });
  return toTable(['COUNTER', 'VALUE'], rows, { paint });
}
