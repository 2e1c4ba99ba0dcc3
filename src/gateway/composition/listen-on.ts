import { orStartError } from '#base';
import type { Config } from '#config';

type Address = Config['gateway']['listen'];

/** Listens on the address of a key of `gateway`. Returns the port; rejects with a StartError that names the key. */
export async function listenOn(
  start: (address: Address) => Promise<number>,
  address: Address,
  key: 'listen' | 'admin_listen',
): Promise<number> {
  return await orStartError(`gateway.${key} ${address.host}:${address.port}`, start(address));
}
