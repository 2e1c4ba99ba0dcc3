import { arch, platform } from 'node:os';
import { readVersion } from '#base/embedded';
import { COMMANDS, parseOptions } from '#cli/arguments';
import type { Invocation } from '#cli/command';

/** `gateway version`: prints the version, that of Node and the platform, as text or JSON. */
export async function version({ args, stdout, nodeVersion }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.version.options);
  const facts = { version: await readVersion(), node: nodeVersion, platform: platform(), arch: arch() };
  if (values.json) stdout.write(`${JSON.stringify(facts, null, 2)}\n`);
  else stdout.write(`spangate ${facts.version} (node ${facts.node}, ${facts.platform} ${facts.arch})\n`);
  return 0;
}
