import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

/*
 * npm run compared: which package of docs/comparison.md has a newer release than the page was written from. Asks npm and pip, as they are set
 * up here. Gateways without a package are told as such: look at their repositories.
 */

/** A row of the page's table of versions. */
export interface ComparedGateway {
  readonly name: string;
  /** The version that the page was written from. */
  readonly version: string;
  /** The day it was read on: an ISO date. */
  readonly readOn: string;
  /** Undefined if it is in no registry. */
  readonly package: { readonly registry: 'npm' | 'PyPI'; readonly name: string } | undefined;
}

const ROW =
  /^\| \[([^\]]+)\]\([^)]+\)[^|]*\| ([^\s,|]+)[^|]*\| (\d{4}-\d\d-\d\d) \| (?:(npm|PyPI) `([^`]+)`|–) \|/gm;

/** The gateways of docs/comparison.md. */
export function readCompared(page: string): readonly ComparedGateway[] {
  return [...page.matchAll(ROW)].map(
    ([, name = '', version = '', readOn = '', registry, packageName = '']) => ({
      name,
      version,
      readOn,
      package: registry === 'npm' || registry === 'PyPI' ? { registry, name: packageName } : undefined,
    }),
  );
}

function findNewest({ registry, name }: NonNullable<ComparedGateway['package']>): string {
  const ask = (command: string, ...args: readonly string[]) =>
    execFileSync(command, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'], timeout: 60_000 });
  if (registry === 'npm') return ask('npm', 'view', name, 'version').trim();
  return /\(([^)]+)\)/.exec(ask('pip', 'index', 'versions', name))?.[1] ?? '';
}

function describeNewest(gateway: ComparedGateway): string {
  if (gateway.package === undefined) return 'in no registry: look at its repository';
  try {
    const newest = findNewest(gateway.package);
    return newest === gateway.version ? 'the newest' : `NEWER: ${newest}`;
  } catch {
    return `not answered by ${gateway.package.registry}`;
  }
}

if (import.meta.main) {
  const page = readFileSync(join(import.meta.dirname, '../docs/comparison.md'), 'utf8');
  for (const gateway of readCompared(page)) {
    const { name, version, readOn } = gateway;
    console.log(`${name.padEnd(20)}${version.padEnd(12)}${readOn}  ${describeNewest(gateway)}`);
  }
}
