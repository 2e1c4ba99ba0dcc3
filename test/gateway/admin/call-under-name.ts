import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';

/** What is sent, and the name in `Host`, which `fetch` does not let a caller choose. */
interface NamedCall {
  readonly method?: string;
  readonly host: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Calls a server under another name than that of its URL. */
export async function callUnderName(
  url: string,
  { method = 'GET', host, headers = {} }: NamedCall,
): Promise<Response> {
  const call = request(url, { method, headers: { ...headers, Host: host }, agent: false });
  call.end();
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  const body = Buffer.concat(await answer.toArray());
  const fields = Object.entries(answer.headers).map(([name, value]): [string, string] => [
    name,
    String(value),
  ]);
  return new Response(new Uint8Array(body), { status: answer.statusCode ?? 0, headers: fields });
}
