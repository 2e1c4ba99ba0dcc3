import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { StartedGateway } from '../start-gateway.ts';

/**
 * Everything that a gateway shows or stores: records, log, metrics, answers of the admin API, files in `state_dir`, joined
 * by line feeds. Closes the gateway.
 */
export async function closeAndCollectTexts(gateway: StartedGateway): Promise<string> {
  const texts = [
    JSON.stringify(gateway.records),
    ...gateway.logLines,
    await (await gateway.admin('/metrics')).text(),
    await (await gateway.admin('/admin/records')).text(),
    await (await gateway.admin('/admin/overview')).text(),
  ];
  await gateway.close();
  for (const name of await readdir(gateway.stateDir, { recursive: true }).catch(() => [])) {
    texts.push(await readFile(join(gateway.stateDir, name), 'utf8').catch(() => ''));
  }
  return texts.join('\n');
}
