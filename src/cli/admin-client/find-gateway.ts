import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { tryCertificates, UnusableSettingError } from '#base';
import { findConfigPath, type Invocation, readConfigFile, requireConfigPath, UsageError } from '#cli/command';
import { type ListenAddress, parseBaseUrl, printListenAddress } from '#config/addresses';

/** Where the admin API of a gateway is, and how it is reached. */
export interface GatewayAddress {
  readonly baseUrl: string;
  readonly fetch: Fetch;
}

/** As much of `fetch` as a client of the admin API needs. */
export type Fetch = (
  url: string,
  init: {
    readonly method: string;
    readonly headers: Record<string, string>;
    readonly redirect: 'error';
    readonly body?: string;
    readonly signal: AbortSignal;
  },
) => Promise<{
  readonly ok: boolean;
  readonly status: number;
  readonly body: AsyncIterable<Uint8Array> | null;
}>;

/** The options of a command line that say which gateway is meant. */
export interface GatewayOptions {
  readonly admin?: string;
  readonly config?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Finds the admin API of the gateway that a command line names. Throws a UsageError, a ConfigError or a StartError. */
export async function findGateway(options: GatewayOptions, env: Invocation['env']): Promise<GatewayAddress> {
  const { admin, config } = options;
  const own = await readOwn(options);
  if (admin !== undefined) {
    const baseUrl = parseBaseUrl(admin);
    if (baseUrl === null) throw new UsageError("option '--admin' needs an http:// or https:// URL");
    return { baseUrl, fetch: Object.keys(own).length === 0 ? fetch : await createFetch(own) };
  }
  const path = findConfigPath(config, env);
  if (path === null) throw new UsageError('no gateway: give --admin URL or -config FILE, or set SVC_CONFIG');
  const { adminListen, adminTls } = (await readConfigFile(path, env).catch(refuse)).config.gateway;
  return await toAddress(adminListen, adminTls, own);
}

/** A command that asks a gateway says what became of the gateway when its own reading of the file fails. */
function refuse(error: unknown): never {
  if (!(error instanceof Error) || error.name !== 'ConfigError') throw error;
  throw new UnusableSettingError(
    `the configuration has mistakes, so no gateway was asked; a running one keeps its former configuration. With --admin URL this command asks it.\n${error.message}`,
    error,
  );
}

/** Finds the client-facing listener of a configuration file. Throws as `findGateway` does. */
export async function findClientListener(
  options: Omit<GatewayOptions, 'admin'>,
  env: Invocation['env'],
): Promise<GatewayAddress> {
  const own = await readOwn(options);
  const { config } = await readConfigFile(requireConfigPath(options.config, env), env);
  return await toAddress(config.gateway.listen, config.gateway.tls, own);
}

async function toAddress(
  listen: ListenAddress,
  tls: { readonly cert: string } | null,
  own: TlsTrust,
): Promise<GatewayAddress> {
  const host = printListenAddress({ ...listen, host: reachable(listen.host) });
  if (tls === null) return { baseUrl: `http://${host}`, fetch };
  const pinned = own.ca === undefined ? await readTrust(tls.cert) : {};
  return { baseUrl: `https://${host}`, fetch: await createFetch({ ...pinned, ...own }) };
}

/** Reads the certificates that the command line names. */
async function readOwn({ ca, cert, key }: GatewayOptions): Promise<TlsTrust> {
  if ((cert === undefined) !== (key === undefined)) throw new UsageError('--cert and --key belong together');
  const authority = ca === undefined ? {} : { ca: await readPem(ca) };
  const own =
    cert === undefined || key === undefined ? {} : { cert: await readPem(cert), key: await readPem(key) };
  // Otherwise each would look like a gateway that cannot be reached. createSecureContext ignores an authority that is none.
  if (authority.ca !== undefined) tryCertificates(`--ca ${ca}`, () => new X509Certificate(authority.ca));
  tryCertificates(`--cert ${cert} and --key ${key}`, () => createSecureContext(own), own.cert, own.key);
  return { ...authority, ...own };
}

/** A listener on all addresses is reached over the loopback address. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1';
  return host === '::' ? '::1' : host;
}

interface TlsTrust {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly allowPartialTrustChain?: boolean;
  readonly checkServerIdentity?: (
    host: string,
    peer: { readonly fingerprint256: string },
  ) => Error | undefined;
}

async function readTrust(path: string): Promise<TlsTrust> {
  const cert = await readPem(path);
  return tryCertificates(path, () => trustOnly(cert));
}

/** Trusts the certificate of the configuration file, whatever name it is for and whoever signed it, and no other. */
function trustOnly(cert: string): TlsTrust {
  const { fingerprint256 } = new X509Certificate(cert);
  return {
    ca: cert,
    allowPartialTrustChain: true,
    checkServerIdentity: (_host, peer) =>
      peer.fingerprint256 === fingerprint256 ? undefined : new Error('another certificate'),
  };
}

/** Creates a `fetch` for other certificates than those Node trusts. undici is loaded only then: it takes time. */
async function createFetch(connect: TlsTrust): Promise<Fetch> {
  const undici = await import('undici');
  const dispatcher = new undici.Agent({ connect });
  return (url, init) => undici.fetch(url, { ...init, dispatcher });
}

async function readPem(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    const { code = 'unreadable' } = error as NodeJS.ErrnoException;
    throw new UnusableSettingError(`cannot read ${path} (${code})`, error);
  }
}
