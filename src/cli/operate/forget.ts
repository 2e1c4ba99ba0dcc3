import { openAdmin } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import type { Invocation } from '#cli/command';
import { printJson } from '../print-json.ts';

/** `gateway forget NAME`: no drain waits any longer for a gateway that has vanished. */
export async function forget({ args, env, stdout }: Invocation): Promise<number> {
  const { values, positionals } = parseOptions(args, COMMANDS.forget.options, ['NAME']);
  const client = await openAdmin(values, env, 'admin');
  const [name = ''] = positionals;
  const answer = await client.call('POST', `/admin/gateways/${encodeURIComponent(name)}/forget`);
  if (values.json) printJson(stdout, answer);
  else stdout.write(`${name} is forgotten: drains no longer wait for it\n`);
  return 0;
}
