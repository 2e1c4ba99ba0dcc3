import { Agent } from 'node:http';
import { readCpu, toSpentUs } from '../programs/process-tree.ts';
import { post } from './load.ts';
import { sendInClosedLoop } from './loops.ts';
import { PLAIN_BODY } from './plain-exchange.ts';

/** V8 goes on compiling the gateway's hot code for tens of thousands of requests: after 15,000 it takes half as much again. */
export const WARM_REQUESTS = 40_000;

const CLIENTS = 32;

interface ChatOptions {
  readonly fields?: Readonly<Record<string, string>>;
  readonly body?: string;
}

/**
 * Sends chats and returns the CPU time in µs that the server's processes spent on all of them. Throws if one fails.
 * `fields`: of the header; `body`: JSON.
 */
export async function spendOnChats(
  { pid, url }: { readonly pid: number; readonly url: string },
  requestCount: number,
  { fields = { 'X-Tenant': 'acme' }, body = PLAIN_BODY }: ChatOptions = {},
): Promise<number> {
  const before = readCpu(pid);
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  await sendInClosedLoop(CLIENTS, requestCount, async () => {
    const { problem } = await post(agent, `${url}/v1/chat/completions`, body, fields);
    if (problem !== null) throw new Error(`a request failed: ${problem}`);
  });
  agent.destroy();
  return toSpentUs(before, readCpu(pid));
}
