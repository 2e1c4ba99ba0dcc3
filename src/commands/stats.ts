import { memberOf, openAdmin } from './admin-client.ts';
import type { Invocation } from './command.ts';
import { toTable } from './table.ts';

/** `gateway stats`: the export counters of a running gateway, as a table or JSON. */
export async function stats(invocation: Invocation): Promise<number> {
  const { client, asJson } = await openAdmin(invocation);
  const answer = await client.call('GET', '/admin/stats');
  invocation.stdout.write(asJson ? `${JSON.stringify(answer, null, 2)}\n` : toStatsTable(answer));
  return 0;
}

function toStatsTable(answer: unknown): string {
  const names = typeof answer === 'object' && answer !== null ? Object.keys(answer) : [];
  const rows = names.flatMap((name): [string, number][] => {
    const value = memberOf(answer, name);
    return typeof value === 'number' ? [[name, value]] : [];
  });
  return toTable(['COUNTER', 'VALUE'], rows);
}
