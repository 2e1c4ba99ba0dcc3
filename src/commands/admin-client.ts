import { parseBaseUrl, printListenAddress } from '../config/values.ts';
import { StartError } from '../start-error.ts';
import { type Invocation, UsageError } from './command.ts';
import { configOption, parseOptions } from './options.ts';
import { findConfigPath, readConfigFile } from './read-config.ts';

/** A running gateway's admin API, as a sub-command talks to it. */
export interface AdminClient {
  /** The answer's JSON. Throws a StartError when the API cannot be reached or says no. */
  call(method: 'GET' | 'POST', path: string): Promise<unknown>;
}

/** The options of every command that talks to the admin API. */
const adminOptions = { ...configOption, admin: { type: 'string' }, json: { type: 'boolean' } } as const;

/** Parses an admin command's line and finds its gateway. `names` are its positional arguments. */
export async function openAdmin({ args, env }: Invocation, names: readonly string[] = []) {
  const { values, positionals } = parseOptions(args, adminOptions, names);
  const baseUrl = await findBaseUrl(values, env);
  const token = env.SVC_ADMIN_TOKEN;
  if (!token) throw new UsageError('SVC_ADMIN_TOKEN is not set: it holds the token of the admin API');
  const client: AdminClient = { call: (method, path) => callAdmin(baseUrl, token, method, path) };
  return { client, asJson: values.json === true, positionals };
}

const ANSWER_WITHIN_MS = 10_000;

async function findBaseUrl(
  values: { readonly admin?: string; readonly config?: string },
  env: Invocation['env'],
): Promise<string> {
  if (values.admin !== undefined) {
    const url = parseBaseUrl(values.admin);
    if (url === null) throw new UsageError("option '--admin' needs an http:// or https:// URL");
    return url;
  }
  const path = findConfigPath(values.config, env);
  if (path === null) throw new UsageError('no gateway: give --admin URL or -config FILE, or set SVC_CONFIG');
  const { host, port } = (await readConfigFile(path, env)).gateway.admin_listen;
  return `http://${printListenAddress({ host: ANY_ADDRESS[host] ?? host, port })}`;
}

/** A listener on any address is reached over the loopback. */
const ANY_ADDRESS: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' };

async function callAdmin(baseUrl: string, token: string, method: string, path: string): Promise<unknown> {
  let response: Response;
  let text: string;
  try {
    response = await fetch(baseUrl + path, {
      method,
      headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
      redirect: 'error', // a redirect must not carry the token elsewhere
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    });
    text = await response.text();
  } catch (error) {
    throw new StartError(`cannot reach the admin API at ${baseUrl}: ${toReason(error)}`, error);
  }
  const answer = parseJson(text);
  if (response.ok && answer !== undefined) return answer;
  const { code, message } = toApiError(answer);
  if (code === undefined) {
    throw new StartError(`${baseUrl} does not answer like an admin API (status ${response.status})`);
  }
  throw new StartError(`the admin API refused: ${toOneLine(message ?? code)} (${toOneLine(code)})`);
}

function toReason(error: unknown): string {
  if (error instanceof Error && error.name === 'TimeoutError')
    return `no answer in ${ANSWER_WITHIN_MS / 1000}s`;
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : undefined;
  return code === undefined ? 'the call failed' : (REASONS[code] ?? code);
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'connection refused',
  ENOTFOUND: 'there is no such host',
  ECONNRESET: 'the connection was reset',
  UND_ERR_SOCKET: 'the connection was closed',
};

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // V8's message would quote the answer
  }
}

/** The members of the error shape `{"error":{message,code}}` that are there. */
function toApiError(answer: unknown): { readonly code?: string; readonly message?: string } {
  const error = memberOf(answer, 'error');
  const code = memberOf(error, 'code');
  const message = memberOf(error, 'message');
  return {
    ...(typeof code === 'string' ? { code } : {}),
    ...(typeof message === 'string' ? { message } : {}),
  };
}

/** A member of a JSON object; undefined where there is none. */
export function memberOf(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, key) : undefined;
}

/** A text of the other side on one line, harmless for a terminal. */
export function toOneLine(text: string): string {
  return text.replace(/\p{Cc}+/gu, ' ').slice(0, 300);
}
