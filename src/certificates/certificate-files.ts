import { createPrivateKey, randomBytes, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { Config, ReplicaConfig, ServiceConfig } from '../config/config.ts';
import { checkTlsMaterial, type TlsMaterial } from '../http/tls-acceptor.ts';
import { StartError } from '../start-error.ts';

/** What TLS uses, read from files. Null: that listener is not encrypted. */
export interface Certificates {
  readonly listen: TlsMaterial | null;
  readonly admin: TlsMaterial | null;
  /** The replicas and services of the configuration; those with `tls` have what their files contain. */
  readonly replicas: readonly ReplicaConfig[];
  readonly services: readonly ServiceConfig[];
}

const TICKET_KEY_BYTES = 48; // what node:tls wants

type ListenerTls = NonNullable<Config['gateway']['tls']>;

/**
 * Reads all certificates and keys that a configuration names, and checks that they can be used. Rejects with a
 * StartError that names the key of the configuration and the file.
 */
export async function readCertificates({ gateway, replicas, services }: Config): Promise<Certificates> {
  const read = (tls: ListenerTls | null, key: string) =>
    tls === null ? Promise.resolve(null) : readListener(tls, key);
  const [listen, admin] = await Promise.all([
    read(gateway.tls, 'gateway.tls'),
    read(gateway.adminTls, 'gateway.admin_tls'),
  ]);
  return {
    listen,
    admin,
    replicas: await Promise.all(replicas.map(withTls)),
    services: await Promise.all(services.map(withTls)),
  };
}

async function readListener({ pairs, clientCa, minVersion }: ListenerTls, key: string): Promise<TlsMaterial> {
  const ca = await readPem(clientCa, `${key}.client_ca`);
  const common = { clientCa: ca, minVersion, ticketKeys: randomBytes(TICKET_KEY_BYTES) };
  const read = pairs.map(async (pair) => {
    const [cert, privateKey] = await Promise.all([
      readPem(pair.cert, `${key}.cert`),
      readPem(pair.key, `${key}.key`),
    ]);
    const usable = { cert, key: privateKey };
    check(`${key}: ${pair.cert} and ${pair.key}`, () => checkTlsMaterial({ ...common, pairs: [usable] }));
    return usable;
  });
  const [first, ...others] = await Promise.all(read);
  if (first === undefined) throw new RangeError('a listener has at least one certificate');
  return { ...common, pairs: [first, ...others] };
}

async function withTls<T extends ReplicaConfig | ServiceConfig>(
  config: T,
): Promise<T & Pick<ReplicaConfig, 'tls' | 'tlsName'>> {
  if (config.tlsFiles === undefined) return config;
  const { serverName, verify, ...paths } = config.tlsFiles;
  const at = `replicas: ${config.name}: tls`;
  const [ca, cert, key] = await Promise.all([
    readPem(paths.ca, `${at}.ca`),
    readPem(paths.cert, `${at}.cert`),
    readPem(paths.key, `${at}.key`),
  ]);
  const files = [paths.ca, paths.cert, paths.key].filter((path) => path !== null).join(', ');
  check(`${at}: ${files}`, () => {
    // An empty text would count as an absent one.
    for (const pem of [ca, cert]) if (pem !== null) new X509Certificate(pem);
    if (key !== null) createPrivateKey(key);
    createSecureContext({
      ...(ca === null ? {} : { ca }),
      ...(cert === null ? {} : { cert }),
      ...(key === null ? {} : { key }),
    });
  });
  return {
    ...config,
    tls: { ca, cert, key, verify },
    ...(serverName === null ? {} : { tlsName: serverName }),
  };
}

async function readPem<P extends string | null>(path: P, key: string): Promise<P> {
  if (path === null) return path;
  try {
    return (await readFile(path, 'utf8')) as P;
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
    throw new StartError(`${key}: cannot read ${path} (${code})`, error);
  }
}

/** OpenSSL's own messages say little, and nothing of the files' content. */
const MEANINGS: Readonly<Record<string, string>> = {
  ERR_OSSL_X509_KEY_VALUES_MISMATCH: 'the key does not belong to the certificate',
  ERR_OSSL_PEM_NO_START_LINE: 'this is not PEM',
  ERR_OSSL_UNSUPPORTED: 'the key is not a private key in PEM',
  ERR_OSSL_CRYPTO_INTERRUPTED_OR_CANCELLED: 'the key is encrypted: give it without a password',
};

function check(what: string, action: () => void): void {
  try {
    action();
  } catch (error) {
    const { code = 'unusable', message } = error as NodeJS.ErrnoException;
    throw new StartError(`${what}: ${MEANINGS[code] ?? message}`, error);
  }
}
