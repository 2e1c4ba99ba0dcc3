import { memberOf } from '#base/parsed';
import { type AdminClient, openAdmin } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import type { Invocation } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import { printJson } from '../print-json.ts';

/** `gateway sign-in`: prints a link to the page that signs in once, with the role of the token in the environment. */
export async function signIn({ args, env, stdout }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS['sign-in'].options);
  const link = await makeSignInLink(await openAdmin(values, env));
  if (values.json) printJson(stdout, link);
  else stdout.write(`${link.url}\n`);
  return 0;
}

/** Makes a link that signs in to the page once. Throws what a call throws. */
export async function makeSignInLink(
  client: AdminClient,
): Promise<{ readonly url: string; readonly expires_at: string }> {
  const answer = await client.call('POST', '/admin/sign-in-links');
  const [code, expiresAt] = ['code', 'expires_at'].map((key) => toOneLine(String(memberOf(answer, key))));
  return { url: `${client.baseUrl}/#sign-in=${code}`, expires_at: expiresAt ?? '' };
}
