import { StartError } from '#base';
import { memberOf, parseJson } from '#base/parsed';
import { type Invocation, UsageError } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import { type AdminToken, allows, type NeededRole, readAdminTokens, TOKEN_VARIABLES } from '#config/secrets';
import { type Fetch, findGateway, type GatewayAddress, type GatewayOptions } from './find-gateway.ts';

/** The admin API of a running gateway. */
export interface AdminClient {
  readonly baseUrl: string;
  /**
   * Returns the JSON of the answer. Throws a RefusedError when the API refuses the call, and an UnreachableError when it
   * does not answer or `signal` aborts. `body` is sent as JSON.
   */
  call(method: 'GET' | 'POST', path: string, signal?: AbortSignal, body?: object): Promise<unknown>;
}

/** The admin API does not answer. The call may be repeated. */
export class UnreachableError extends StartError {
  override readonly name = 'UnreachableError';
}

/** The admin API refuses the call. */
export class RefusedError extends StartError {
  /** Its stable error code. */
  readonly code: string;
  /** Its whole message, which may have several lines. It comes from elsewhere: use toOneLine before printing it. */
  readonly reason: string;
  /** What it is about, from elsewhere, too; undefined: nothing in particular. */
  readonly param: string | undefined;

  /** `baseUrl`: whose it is, where there are several. `param`: what of the call it is about. */
  constructor(
    code: string,
    reason: string,
    { baseUrl, param }: { baseUrl?: string; param?: string | undefined } = {},
  ) {
    super(
      `the admin API${baseUrl === undefined ? '' : ` at ${baseUrl}`} refused: ${toOneLine(reason)} (${toOneLine(code)})`,
    );
    this.name = 'RefusedError';
    this.code = code;
    this.reason = reason;
    this.param = param;
  }
}

/**
 * Finds the gateway that a command line names. `role` is the weakest role that may make the command's calls. Throws a
 * UsageError, a SecretError, a ConfigError or a StartError.
 */
export async function openAdmin(
  values: GatewayOptions,
  env: Invocation['env'],
  role: NeededRole = 'reader',
): Promise<AdminClient> {
  const address = await findGateway(values, env);
  return createAdminClient(address, await findToken(env, role));
}

/** The options of a command line that may name several gateways. */
export interface SeveralGateways extends Omit<GatewayOptions, 'admin'> {
  readonly admin?: readonly string[];
}

/**
 * Opens all gateways that a command line names, each once; without `admin` that of the configuration file. Several say who
 * they are of what they refuse. Throws as `openAdmin` does.
 */
export async function openGateways(
  { admin, config, ca, cert, key }: SeveralGateways,
  env: Invocation['env'],
  role?: NeededRole,
): Promise<readonly AdminClient[]> {
  const given = Object.entries({ config, ca, cert, key }).filter(([, value]) => value !== undefined);
  const others = Object.fromEntries(given);
  const named = admin?.map((url) => ({ ...others, admin: url })) ?? [others];
  const clients = await Promise.all(named.map((options) => openAdmin(options, env, role)));
  const opened = [...new Map(clients.map((client) => [client.baseUrl, client])).values()];
  return opened.length === 1 ? opened : opened.map(withAddress);
}

function withAddress({ baseUrl, call }: AdminClient): AdminClient {
  return {
    baseUrl,
    call: (...args) =>
      call(...args).catch((error: unknown) => {
        if (!(error instanceof RefusedError)) throw error;
        const { code, reason, param } = error;
        throw new RefusedError(code, reason, { baseUrl, param });
      }),
  };
}

/** Creates a client of the admin API at this address. A call fails when there is no answer within `answerTimeoutMs`. */
export function createAdminClient(
  { baseUrl, fetch }: GatewayAddress,
  token: string,
  answerTimeoutMs = ANSWER_TIMEOUT_MS,
): AdminClient {
  return {
    baseUrl,
    async call(method, path, signal, body) {
      const url = baseUrl + path;
      const headers = { authorization: `Bearer ${token}`, accept: 'application/json' };
      const content =
        body === undefined
          ? { headers }
          : { headers: { ...headers, 'content-type': 'application/json' }, body: JSON.stringify(body) };
      let response: AdminResponse;
      try {
        response = await beforeDeadline(signal, answerTimeoutMs, async (end) =>
          // A redirect must not carry the token elsewhere.
          read(await fetch(url, { method, ...content, redirect: 'error', signal: end })),
        );
      } catch (error) {
        const reason = toReason(error, url);
        throw new UnreachableError(`cannot reach the admin API at ${baseUrl}: ${reason}`, error);
      }
      const answer = parseJson(response.text);
      if (response.isOk && isAnswer(path, answer)) return answer;
      const { code, message, param } = toApiError(answer);
      if (code !== undefined) throw new RefusedError(code, message ?? code, { param });
      // What a server that speaks TLS answers to a request without it.
      const hint = response.status === 400 && url.startsWith('http:') ? ': it may want https://' : '';
      throw new StartError(`${baseUrl} does not answer like an admin API (status ${response.status})${hint}`);
    },
  };
}

/** The strongest token of the environment. Of several in a file, the first: a new one is added below it until all know it. */
async function findToken(env: Invocation['env'], needed: NeededRole): Promise<string> {
  const [strongest] = (await readAdminTokens(env)).tokens;
  if (strongest === undefined) {
    throw new UsageError(
      `${TOKEN_VARIABLES[needed]} is not set: it holds the token of the admin API that this command needs`,
    );
  }
  if (allows(strongest.role, needed)) return strongest.token;
  throw new UsageError(`${TOKEN_VARIABLES[needed]} is not set, and the token in ${LIMITS[strongest.role]}`);
}

/** What the tokens allow that may be too weak for a command. */
const LIMITS: Readonly<Record<AdminToken['role'], string>> = {
  admin: 'SVC_ADMIN_TOKEN is none',
  operator: 'SVC_OPERATOR_TOKEN only reads, and steers replicas, shadows and rollouts',
  reader: 'SVC_READ_TOKEN only reads',
  drainer: 'SVC_DRAIN_TOKEN is for calls of the admin API from pods',
};

/** Long, because an undrain waits for unreachable gateways, and a drain waits for probes of replicas. */
const ANSWER_TIMEOUT_MS = 20_000;

/** No gateway sends a longer answer. */
const MAX_ANSWER_BYTES = 16 * 1024 ** 2;

/**
 * The calls whose answer has a member of this name. A server that answers everything with some JSON, such as a health check,
 * is no admin API: a drain by it would leave the replica in use.
 */
const MEMBERS = {
  changed: /^reload$/,
  code: /^sign-in-links$/,
  conditions: /^(?:conditions|overview)$/,
  events: /^timeline$/,
  exported: /^stats$/,
  gateways: /^gateways(?:\/|$)/,
  records: /^(?:statement-)?records(?:\/|$)/,
  replica: /^replicas\/[^/]+(?:\/(?:un)?(?:drain|shadow))?$/,
  replicas: /^replicas$/,
  rollouts: /^rollouts$/,
  rows: /^usage$/,
  verdict: /^verdict$/,
};

function isAnswer(path: string, answer: unknown): boolean {
  const call = path.replace(/^\/admin\/|\?.*/g, '');
  const [member] = Object.entries(MEMBERS).find(([, calls]) => calls.test(call)) ?? [];
  return answer !== undefined && (member === undefined || memberOf(answer, member) !== undefined);
}

interface AdminResponse {
  readonly isOk: boolean;
  readonly status: number;
  /** Empty if it was longer than MAX_ANSWER_BYTES. */
  readonly text: string;
}

async function read({ ok: isOk, status, body }: Awaited<ReturnType<Fetch>>): Promise<AdminResponse> {
  const chunks: Uint8Array[] = [];
  let sizeBytes = 0;
  for await (const chunk of body ?? []) {
    sizeBytes += chunk.length;
    if (sizeBytes > MAX_ANSWER_BYTES) return { isOk, status, text: '' };
    chunks.push(chunk);
  }
  return { isOk, status, text: Buffer.concat(chunks).toString('utf8') };
}

/** Rejects when the time is up or `signal` aborts, even if `work` ignores its own signal. */
async function beforeDeadline<T>(
  signal: AbortSignal | undefined,
  timeoutMs: number,
  work: (end: AbortSignal) => Promise<T>,
): Promise<T> {
  const deadline = AbortSignal.timeout(timeoutMs);
  const end = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
  const { promise: ended, reject } = Promise.withResolvers<never>();
  end.throwIfAborted();
  const why = () => (deadline.aborted ? new StartError(`no answer within ${timeoutMs / 1000}s`) : end.reason);
  end.addEventListener('abort', () => reject(why()));
  return await Promise.race([work(end), ended]);
}

/** Why a call of `fetch` to this URL failed, and what to do. */
export function toReason(error: unknown, url: string): string {
  if (error instanceof StartError) return error.message;
  const cause = error instanceof Error ? error.cause : undefined;
  if (!(cause instanceof Error)) return 'the call failed';
  const code = String(memberOf(cause, 'code') ?? cause.message);
  // A server may close a connection of TLS 1.3 that lacks a certificate only after its handshake.
  if (code === 'UND_ERR_SOCKET' && url.startsWith('https:'))
    return 'the connection was closed: it may want a client certificate (--cert and --key)';
  return REASONS.get(code) ?? (cause.name === 'HTTPParserError' ? 'it does not speak HTTP' : code);
}

/** By the code of an error, or the message of one that has none. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['bad port', 'fetch calls no server at this port'],
  ['unexpected redirect', 'it redirects, which is not followed: give the address where the redirect leads'],
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'it does not speak TLS: it may want http://'],
  ['ECONNREFUSED', 'connection refused'],
  ['ENOTFOUND', 'there is no such host'],
  ['ECONNRESET', 'the connection was reset'],
  ['UND_ERR_SOCKET', 'the connection was closed'],
  ['DEPTH_ZERO_SELF_SIGNED_CERT', 'its certificate is self-signed: name its authority with --ca'],
  ['SELF_SIGNED_CERT_IN_CHAIN', 'the authority of its certificate is unknown: name it with --ca'],
  ['UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'the authority of its certificate is unknown: name it with --ca'],
  ['UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'the authority of its certificate is unknown: name it with --ca'],
  ['CERT_HAS_EXPIRED', 'its certificate has expired'],
  ['ERR_TLS_CERT_ALTNAME_INVALID', 'its certificate is for another name'],
]);

/** Reads the error shape `{"error":{message,code,param}}`, as far as the answer has it. */
function toApiError(answer: unknown) {
  const error = memberOf(answer, 'error');
  const read = (name: string) => {
    const value = memberOf(error, name);
    return typeof value === 'string' ? value : undefined;
  };
  return { code: read('code'), message: read('message'), param: read('param') };
}
