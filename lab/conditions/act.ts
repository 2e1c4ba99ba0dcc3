import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ADMIN_TOKEN, askAdmin, type GatewayProcess } from '#testkit/programs/gateway-process.ts';

/** Sends a POST to the admin API. Rejects if it is refused. */
export async function callAdmin({ adminUrl }: GatewayProcess, path: string, body?: object): Promise<void> {
  await askAdmin(adminUrl, 'POST', path, body);
}

/** Sends a POST to the admin API that may be refused. */
export async function tryAdmin(
  { adminUrl }: GatewayProcess,
  path: string,
  token = ADMIN_TOKEN,
): Promise<void> {
  const headers = { Authorization: `Bearer ${token}` };
  await (await fetch(adminUrl + path, { method: 'POST', headers })).arrayBuffer();
}

/** The configuration of a gateway in a folder. */
export type ConfigText = Readonly<Record<string, unknown>>;

/** Changes the configuration file of a gateway in this folder. */
export async function rewrite(folder: string, change: (config: ConfigText) => object): Promise<void> {
  const path = join(folder, 'gateway.yaml');
  const config = JSON.parse(await readFile(path, 'utf8')) as ConfigText;
  await writeFile(path, JSON.stringify(change(config)));
}

/** Changes the configuration file of a gateway in this folder, and has it read. */
export async function reloadWith(
  gateway: GatewayProcess,
  folder: string,
  change: (config: ConfigText) => object,
): Promise<void> {
  await rewrite(folder, change);
  await callAdmin(gateway, '/admin/reload');
}
