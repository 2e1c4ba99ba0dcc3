import type { RequestRecord } from '#otel/record/registry';
import { exchangeRaw, postBytes, type RawResponse } from '../raw-http.ts';
import type { Sections, World } from './world.ts';

const CHAT = '/v1/chat/completions';

/** What an answer says, such as `413 request_too_large`; `closed` if there was none. */
export function toOutcome({ status, body }: RawResponse): string {
  const code = /"code":"(\w+)"/.exec(body.toString())?.[1];
  if (status === 0) return 'closed';
  return code === undefined ? String(status) : `${status} ${code}`;
}

/** Sends bytes to a gateway with these sections; resolves with the answer's outcome. */
export async function sendBytes(world: World, bytes: string | Buffer, sections?: Sections): Promise<string> {
  const { url } = await world.gateway(sections);
  return toOutcome(await exchangeRaw(url, bytes));
}

/** Sends a chat completion; resolves with the answer's outcome. */
export async function sendChat(world: World, body: string, sections?: Sections): Promise<string> {
  return await sendBytes(world, postBytes(CHAT, body), sections);
}

/** Sends a chat completion with these field lines, and resolves with its record. */
export async function recordOf(
  world: World,
  request: { readonly members?: object; readonly fields?: readonly string[]; readonly sections?: Sections },
): Promise<Readonly<RequestRecord>> {
  const { members = {}, fields = [], sections } = request;
  const gateway = await world.gateway(sections);
  const body = JSON.stringify({ model: 'm', ...members });
  const answer = await exchangeRaw(gateway.url, postBytes(CHAT, body, fields));
  const [id] = answer.header('x-request-id');
  for (let count = 1; ; count++) {
    const record = (await gateway.waitForRecords(count))[count - 1];
    if (record?.request_id === id) return record as RequestRecord;
  }
}

/** A JSON text of this size with the model `m`. */
export function jsonOfSize(sizeBytes: number): string {
  const empty = '{"model":"m","pad":""}';
  return empty.replace('""', `"${'x'.repeat(sizeBytes - empty.length)}"`);
}
