import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { RedisServer } from '#testkit/servers/redis-server.ts';

/** Names and contents of all files below a directory, but for those with these names. Bytes are read as latin-1. */
export async function readFiles(directory: string, excluded: readonly string[] = []): Promise<string> {
  const entries = await readdir(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !excluded.includes(entry.name));
  const contents = files.map(async ({ parentPath, name }) => {
    const path = join(parentPath, name);
    // Meanwhile the gateway may have sent what was in it.
    return `${path}\n${await readFile(path, 'latin1').catch(() => '')}`;
  });
  return (await Promise.all(contents)).join('\n');
}

/** What other users and tools of the machine see of a process: title, arguments, environment, names of threads. */
export async function readProcessListing(pid: number): Promise<string> {
  const threads = await readdir(`/proc/${pid}/task`);
  const paths = ['cmdline', 'environ', 'comm', 'status', ...threads.map((thread) => `task/${thread}/comm`)];
  return (await Promise.all(paths.map((path) => readFile(`/proc/${pid}/${path}`, 'latin1')))).join('\n');
}

const READERS: Readonly<Record<string, readonly string[]>> = {
  string: ['GET'],
  hash: ['HGETALL'],
  set: ['SMEMBERS'],
  list: ['LRANGE', '0', '-1'],
  zset: ['ZRANGE', '0', '-1', 'WITHSCORES'],
  stream: ['XRANGE', '-', '+'],
};

/** All keys of a Redis server with their values, and the names of its clients. */
export async function readRedis({ command }: Pick<RedisServer, 'command'>): Promise<string> {
  const keys = (await command('--scan')).split('\n').filter((key) => key !== '');
  const values = keys.map(async (key) => {
    const [verb = 'GET', ...rest] = READERS[await command('TYPE', key)] ?? [];
    return `${key}\n${await command(verb, key, ...rest)}`;
  });
  return [...(await Promise.all(values)), await command('CLIENT', 'LIST')].join('\n');
}
