import { hash, randomBytes, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { tryCertificates, UnusableSettingError } from '#base';
import type { Config, SecuredReplica } from '#config';
import { checkTlsMaterial, type TlsMaterial } from '#wire/client';

/** What TLS uses, read from files. Null: that listener is not encrypted. */
export interface Certificates {
  readonly listen: TlsMaterial | null;
  readonly admin: TlsMaterial | null;
  /** The replicas of the configuration; those with `tls` have what their files contain. */
  readonly replicas: readonly SecuredReplica[];
}

const TICKET_KEY_BYTES = 48; // what node:tls wants

type ListenerTls = NonNullable<Config['gateway']['adminTls']>;

/**
 * Reads all certificates and keys that a configuration names, and checks that they can be used. Rejects with a
 * StartError that names the key of the configuration and the file. One reading must end before the next begins.
 */
export type ReadCertificates = (config: Config) => Promise<Certificates>;

/** Creates a reader, which remembers the contents that it has found usable. */
export function createCertificateReader(): ReadCertificates {
  let usable: ReadonlySet<string> = new Set();
  return async (config) => {
    const reading = new Reading(usable);
    const certificates = await readAll(config, reading);
    usable = reading.usable;
    return certificates;
  };
}

async function readAll({ gateway, replicas }: Config, reading: Reading): Promise<Certificates> {
  const read = (tls: ListenerTls | null, key: string) =>
    tls === null ? Promise.resolve(null) : readListener(tls, key, reading);
  const [listen, admin] = await Promise.all([
    read(gateway.tls, 'gateway.tls'),
    read(gateway.adminTls, 'gateway.admin_tls'),
  ]);
  return {
    listen,
    admin,
    replicas: await Promise.all(replicas.map((replica) => withTls(replica, reading))),
  };
}

/** The certificates of a listener, each with its key. */
export function pairsOf({ cert, key, pairs }: ListenerTls): ListenerTls['pairs'] {
  return [{ cert, key }, ...pairs];
}

async function readListener(tls: ListenerTls, key: string, reading: Reading): Promise<TlsMaterial> {
  const { clientCa, minVersion } = tls;
  const ca = await reading.read(clientCa, `${key}.client_ca`);
  const common = { clientCa: ca, minVersion, ticketKeys: randomBytes(TICKET_KEY_BYTES) };
  const read = pairsOf(tls).map(async (pair) => {
    const [cert, privateKey] = await Promise.all([
      reading.read(pair.cert, `${key}.cert`),
      reading.read(pair.key, `${key}.key`),
    ]);
    const usable = { cert, key: privateKey };
    reading.check(`${key}: ${pair.cert} and ${pair.key}`, [ca, cert, privateKey], () =>
      checkTlsMaterial({ ...common, pairs: [usable] }),
    );
    return usable;
  });
  const [first, ...others] = await Promise.all(read);
  if (first === undefined) throw new RangeError('a listener has at least one certificate');
  return { ...common, pairs: [first, ...others] };
}

async function withTls(
  { tls, ...replica }: Config['replicas'][number],
  reading: Reading,
): Promise<SecuredReplica> {
  if (tls === null) return replica;
  const { serverName, verify, ...paths } = tls;
  const at = `replicas: ${replica.name}: tls`;
  const [ca, cert, key] = await Promise.all([
    reading.read(paths.ca, `${at}.ca`),
    reading.read(paths.cert, `${at}.cert`),
    reading.read(paths.key, `${at}.key`),
  ]);
  const files = [paths.ca, paths.cert, paths.key].filter((path) => path !== null).join(', ');
  reading.check(`${at}: ${files}`, [ca, cert, key], () => {
    // An empty text would count as an absent one.
    if (ca !== null) new X509Certificate(ca);
    createSecureContext({
      ...(ca === null ? {} : { ca }),
      ...(cert === null ? {} : { cert }),
      ...(key === null ? {} : { key }),
    });
  });
  return {
    ...replica,
    tls: { ca, cert, key, verify },
    ...(serverName === null ? {} : { tlsName: serverName }),
  };
}

/**
 * One reading of all files. It reads each file once, and does not check again what the last reading has found usable: a
 * check takes 0.7 ms, there may be a thousand replicas, and the thread may relay streams.
 */
class Reading {
  /** The digests of the contents that can be used. */
  readonly usable = new Set<string>();
  readonly #known: ReadonlySet<string>;
  readonly #texts = new Map<string, Promise<string>>();

  /** `known`: the digests of the last reading. */
  constructor(known: ReadonlySet<string>) {
    this.#known = known;
  }

  /** Reads a file. `key`: where the configuration names it. */
  async read<P extends string | null>(path: P, key: string): Promise<P> {
    if (path === null) return path;
    const text = this.#texts.get(path) ?? readFile(path, 'utf8');
    this.#texts.set(path, text);
    try {
      return (await text) as P;
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code ?? 'unreadable';
      throw new UnusableSettingError(`${key}: cannot read ${path} (${code})`, error);
    }
  }

  /** Checks an authority, a certificate and a key that are used together, unless that was done. `what`: names them. */
  check(what: string, contents: readonly (string | null)[], action: () => void): void {
    const digest = hash('sha256', JSON.stringify(contents));
    const [, cert, key] = contents;
    if (!this.#known.has(digest) && !this.usable.has(digest)) tryCertificates(what, action, cert, key);
    this.usable.add(digest);
  }
}
