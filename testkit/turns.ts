import type { StartedGateway } from './start-gateway.ts';

/** Sends chat requests one after the other, and returns which replica each record names. */
export async function turnsOf(
  gateway: StartedGateway,
  count: number,
  members: object = {},
): Promise<readonly (string | undefined)[]> {
  const before = gateway.records.length;
  for (let i = 0; i < count; i++) await (await gateway.chat(members)).arrayBuffer();
  const records = await gateway.waitForRecords(before + count);
  return records.slice(before).map(({ replica }) => replica);
}
