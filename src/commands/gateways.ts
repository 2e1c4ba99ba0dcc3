import { type AdminClient, adminOptions, memberOf, openAdmin } from './admin/client.ts';
import type { Invocation } from './command-line/command.ts';
import { parseOptions } from './command-line/options.ts';
import { toCell } from './terminal/replica-cells.ts';
import { toTable } from './terminal/table.ts';

/** `gateway gateways`: the gateways that a drain waits for, as a table or JSON. */
export async function gateways({ args, env, stdout }: Invocation): Promise<number> {
  const { values } = parseOptions(args, adminOptions);
  const client = await openAdmin(values, env);
  const answer = await client.call('GET', '/admin/gateways');
  stdout.write(values.json ? `${JSON.stringify(answer, null, 2)}\n` : toGatewayTable(answer, client));
  return 0;
}

/** `gateway forget NAME`: a gateway that vanished is no longer waited for. */
export async function forget({ args, env, stdout }: Invocation): Promise<number> {
  const { values, positionals } = parseOptions(args, adminOptions, ['NAME']);
  const client = await openAdmin(values, env);
  const [name = ''] = positionals;
  const answer = await client.call('POST', `/admin/gateways/${encodeURIComponent(name)}/forget`);
  stdout.write(
    values.json ? `${JSON.stringify(answer, null, 2)}\n` : `${name} is forgotten: no drain waits for it\n`,
  );
  return 0;
}

function toGatewayTable(answer: unknown, { baseUrl }: AdminClient): string {
  const listed = memberOf(answer, 'gateways');
  const rows = (Array.isArray(listed) ? listed : []).map((gateway: unknown) => [
    toCell(memberOf(gateway, 'name')),
    memberOf(gateway, 'alive') === true ? 'alive' : 'vanished',
    toCell(memberOf(gateway, 'inflight')),
    memberOf(gateway, 'self') === true ? baseUrl : '',
  ]);
  return toTable(['NAME', 'STATE', 'INFLIGHT', 'ASKED AT'], rows);
}
