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

/** Sends chats over connections that stay open. */
export interface ChatClients extends Disposable {
  /** Resolves when so many are answered. Rejects if one fails. */
  send(requestCount: number): Promise<void>;
}

/** Opens the connections with the first requests. `fields`: of the header; `body`: JSON. */
export function startChatClients(
  url: string,
  { fields = { 'X-Tenant': 'acme' }, body = PLAIN_BODY }: ChatOptions = {},
): ChatClients {
  const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
  const sendOne = async () => {
    const { problem } = await post(agent, `${url}/v1/chat/completions`, body, fields);
    if (problem !== null) throw new Error(`a request failed: ${problem}`);
  };
  return {
    send: (requestCount) => sendInClosedLoop(CLIENTS, requestCount, sendOne),
    [Symbol.dispose]: () => agent.destroy(),
  };
}

/** Sends chats and returns the CPU time in µs that the server's processes spent on all of them. Rejects if one fails. */
export async function spendOnChats(
  { pid, url }: { readonly pid: number; readonly url: string },
  requestCount: number,
  options: ChatOptions = {},
): Promise<number> {
  const before = readCpu(pid);
  using clients = startChatClients(url, options);
  await clients.send(requestCount);
  return toSpentUs(before, readCpu(pid));
}
