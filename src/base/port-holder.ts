import { readdir, readFile, readlink } from 'node:fs/promises';
import { basename } from 'node:path';

/** TCP_LISTEN in /proc/net/tcp (Linux, include/net/tcp_states.h). */
const LISTENING = '0A';
/** More of a name says no more. */
const MAX_NAME_CHARS = 40;

/**
 * The process that listens on a port of this machine, such as `node main.ts (process 4711)`. Null where that cannot be
 * known: on other systems than Linux, and of a process of another user.
 */
export async function findPortHolder(port: number): Promise<string | null> {
  const tables = await Promise.all(['/proc/net/tcp', '/proc/net/tcp6'].map(readOrEmpty));
  const sockets = new Set(
    tables.flatMap((table) => findListeners(table, port)).map((inode) => `socket:[${inode}]`),
  );
  if (sockets.size === 0) return null;
  const pids = (await readdir('/proc').catch(() => [])).filter((name) => /^\d+$/.test(name));
  for (const pid of pids) {
    if (await hasSocket(pid, sockets)) return `${await nameOf(pid)} (process ${pid})`;
  }
  return null;
}

/** The inodes of the sockets that listen on a port: columns 2, 4 and 10 of the table. */
export function findListeners(table: string, port: number): readonly string[] {
  const hexPort = port.toString(16).toUpperCase().padStart(4, '0');
  return table.split('\n').flatMap((line) => {
    const columns = line.trim().split(/\s+/);
    const isListener = columns[1]?.endsWith(`:${hexPort}`) === true && columns[3] === LISTENING;
    return isListener && columns[9] !== undefined ? [columns[9]] : [];
  });
}

async function hasSocket(pid: string, sockets: ReadonlySet<string>): Promise<boolean> {
  const folder = `/proc/${pid}/fd`;
  const descriptors = await readdir(folder).catch(() => []);
  const targets = await Promise.all(descriptors.map((each) => readlink(`${folder}/${each}`).catch(() => '')));
  return targets.some((target) => sockets.has(target));
}

/** The program, and the script that it runs. Never further arguments: they may hold secrets. */
async function nameOf(pid: string): Promise<string> {
  const [program = '', script = ''] = (await readOrEmpty(`/proc/${pid}/cmdline`)).split('\0');
  const words = [program, /^[^-].*\.\w+$/.test(script) ? script : ''].filter((word) => word !== '');
  const name = words.map((word) => basename(word)).join(' ');
  return name.replace(/[^\x20-\x7e]/g, '?').slice(0, MAX_NAME_CHARS) || 'a program';
}

async function readOrEmpty(path: string): Promise<string> {
  return await readFile(path, 'utf8').catch(() => '');
}
