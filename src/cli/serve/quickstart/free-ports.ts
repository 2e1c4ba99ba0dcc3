import { once } from 'node:events';
import { createServer } from 'node:net';
import { orStartError, StartError } from '#base';
import { type ListenAddress, parseListenAddress, printListenAddress } from '#config/addresses';

/** An option of the quickstart with its address. */
interface Wanted {
  readonly option: 'listen' | 'admin-listen';
  readonly address: string;
}

/** How far the next free port is looked for. */
const MAX_TRIES = 100;

/**
 * Tries all ports before anything starts. Throws a StartError that names every port that is taken, who has it, and the
 * command with ports that are free. An address that is none is left to the schema. `command` is what people type.
 */
export async function requireFreePorts(wanted: readonly Wanted[], command: string): Promise<void> {
  const problems: string[] = [];
  const options: string[] = [];
  const taken = new Set<number>();
  for (const { option, address } of wanted) {
    const parsed = parseListenAddress(address);
    if (parsed === null || parsed.port === 0) continue;
    taken.add(parsed.port);
    const problem = await findProblem(parsed);
    if (problem === null) continue;
    const free = await findFree(parsed, taken);
    problems.push(`port ${parsed.port}: ${problem}`);
    if (free !== null) options.push(`--${option} ${printListenAddress(free)}`);
  }
  if (problems.length === 0) return;
  const advice = options.length === 0 ? '' : `\nTry: ${command} ${options.join(' ')}`;
  throw new StartError(`${problems.join('\n  ')}${advice}`);
}

/** Why the address cannot be listened on; null if it can. */
async function findProblem(address: ListenAddress): Promise<string | null> {
  try {
    await orStartError('port', tryListen(address));
    return null;
  } catch (error) {
    if (!(error instanceof StartError)) throw error;
    return error.message.replace(/^port: /, '');
  }
}

async function findFree(address: ListenAddress, taken: Set<number>): Promise<ListenAddress | null> {
  for (let port = address.port + 1; port <= Math.min(65_535, address.port + MAX_TRIES); port += 1) {
    const next = { ...address, port };
    if (taken.has(port) || (await findProblem(next)) !== null) continue;
    taken.add(port);
    return next;
  }
  return null;
}

async function tryListen({ host, port }: ListenAddress): Promise<void> {
  const server = createServer();
  server.listen(port, host);
  await once(server, 'listening');
  const closed = once(server, 'close');
  server.close();
  await closed;
}
