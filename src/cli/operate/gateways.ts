import { itemsOf, memberOf } from '#base/parsed';
import { type AdminClient, openAdmin } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import type { Invocation } from '#cli/command';
import { type Cell, createPaint, type Paint, toTable } from '#cli/terminal';
import { printJson } from '../print-json.ts';
import { toCell } from '../tables/replica-cells.ts';

/** By `alive`; what is neither is unknown while the shared state is away. */
const STATES: ReadonlyMap<unknown, Cell> = new Map<unknown, Cell>([
  [true, 'alive'],
  [false, { text: 'vanished', style: 'red' }],
]);

/** `gateway gateways`: shows the gateways that a drain waits for, as a table or JSON. */
export async function gateways({ args, env, stdout }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.gateways.options);
  const client = await openAdmin(values, env);
  const answer = await client.call('GET', '/admin/gateways');
  if (values.json) printJson(stdout, answer);
  else stdout.write(toGatewayTable(answer, client, createPaint(stdout, env)));
  return 0;
}

function toGatewayTable(answer: unknown, { baseUrl }: AdminClient, paint: Paint): string {
  const rows = itemsOf(answer, 'gateways').map((gateway): Cell[] => [
    toCell(memberOf(gateway, 'name')),
    STATES.get(memberOf(gateway, 'alive')) ?? { text: 'unknown', style: 'yellow' },
    toCell(memberOf(gateway, 'inflight')),
    memberOf(gateway, 'self') === true ? baseUrl : '',
  ]);
  return toTable(['NAME', 'STATE', 'INFLIGHT', 'ADMIN API'], rows, { paint });
}
