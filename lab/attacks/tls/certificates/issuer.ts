import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { IssuedCertificate } from '#testkit/certificates.ts';

const run = promisify(execFile);
const DAY_MS = 24 * 3_600_000;
const NEW_KEY = ['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-256'];

/** Who signs certificates: paths of files. */
export type Signer = Pick<IssuedCertificate, 'certPath' | 'keyPath'>;

/** PEM, with the chain. */
export type Pair = Pick<IssuedCertificate, 'cert' | 'key'>;

/** What is in a certificate. */
export interface Contents {
  /** Lines of openssl's x509v3_config(5). */
  readonly extensions: readonly string[];
  readonly subject?: string;
  /** When it begins and ends to be valid, in days from now. */
  readonly days?: readonly [from: number, to: number];
}

/** What is in the certificate of an authority. */
export const AUTHORITY = ['basicConstraints=critical,CA:TRUE'];

/** Issues certificates that node or a careful authority would not. One key serves them all. */
export interface Issuer {
  readonly keyPath: string;
  /** Resolves with its path. `signer`: null for a certificate that signs itself. */
  issue(name: string, signer: Signer | null, contents: Contents): Promise<string>;
  /** Joins certificates, the leaf first, and adds the key. */
  read(...paths: readonly string[]): Promise<Pair>;
}

/** Creates one that writes into a folder. */
export async function createIssuer(folder: string): Promise<Issuer> {
  const at = (file: string) => join(folder, file);
  const keyPath = at('any.key');
  await run('openssl', [...NEW_KEY, '-out', keyPath]);
  const key = await readFile(keyPath, 'utf8');
  return {
    keyPath,
    async issue(name, signer, { extensions, subject = name, days: [from, to] = [-1, 2] }) {
      const [config, request, certPath] = [at(`${name}.cnf`), at(`${name}.csr`), at(`${name}.pem`)];
      await Promise.all([
        writeFile(config, toConfig(at(`${name}.db`), folder, extensions)),
        writeFile(at(`${name}.db`), ''),
        run('openssl', ['req', '-new', '-key', keyPath, '-subj', `/CN=${subject}`, '-out', request]),
      ]);
      const by = signer ?? { keyPath, certPath: null };
      const own = by.certPath === null ? ['-selfsign'] : ['-cert', by.certPath];
      const validity = ['-startdate', toDate(from), '-enddate', toDate(to)];
      const files = ['-config', config, '-keyfile', by.keyPath, '-in', request, '-out', certPath];
      await run('openssl', ['ca', '-batch', '-notext', ...files, ...own, ...validity]);
      return certPath;
    },
    async read(...paths) {
      const certificates = await Promise.all(paths.map((path) => readFile(path, 'utf8')));
      return { cert: certificates.join(''), key };
    },
  };
}

/** The configuration of openssl-ca(1), which alone can choose when a certificate begins to be valid. */
function toConfig(database: string, folder: string, extensions: readonly string[]): string {
  return [
    ...['[ca]', 'default_ca=own', '[own]', `database=${database}`, `new_certs_dir=${folder}`],
    ...['default_md=sha256', 'rand_serial=yes', 'policy=any', 'x509_extensions=given'],
    ...['[any]', 'commonName=supplied', '[given]', ...extensions],
  ].join('\n');
}

/** As openssl reads it: YYYYMMDDHHMMSSZ. */
function toDate(days: number): string {
  return `${new Date(Date.now() + days * DAY_MS).toISOString().replace(/\D/g, '').slice(0, 14)}Z`;
}
