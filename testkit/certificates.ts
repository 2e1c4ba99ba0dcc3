import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** A certificate and its key, as PEM text and as files. */
export interface IssuedCertificate {
  readonly cert: string;
  readonly key: string;
  readonly certPath: string;
  readonly keyPath: string;
}

/** What issues certificates. */
export interface TestIssuer {
  readonly ca: IssuedCertificate;
  /** Issues a certificate for servers and clients, by default for 127.0.0.1 and 60 days. */
  issue(name: string, subject?: string, days?: number): Promise<IssuedCertificate>;
}

/** A certificate authority for one test; disposing it removes its files. */
export interface TestAuthority extends TestIssuer, AsyncDisposable {
  /** Issues the certificate of another authority, which clients do not know. */
  issueAuthority(name: string): Promise<TestIssuer>;
}

const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
const DAYS = 60;

/** Creates an authority with the openssl command, so that the repository has no keys. */
export async function createAuthority(): Promise<TestAuthority> {
  const directory = await mkdtemp(join(tmpdir(), 'spangate-ca-'));
  const pathsOf = (name: string) => ({
    certPath: join(directory, `${name}.pem`),
    keyPath: join(directory, `${name}.key`),
  });
  const request = async (
    name: string,
    options: readonly string[],
    days = DAYS,
  ): Promise<IssuedCertificate> => {
    const { certPath, keyPath } = pathsOf(name);
    const files = [
      '-days',
      String(days),
      '-subj',
      `/CN=spangate ${name}`,
      '-keyout',
      keyPath,
      '-out',
      certPath,
    ];
    await run('openssl', ['req', '-x509', ...NEW_KEY, ...files, ...options]);
    const [cert, key] = await Promise.all([readFile(certPath, 'utf8'), readFile(keyPath, 'utf8')]);
    return { cert, key, certPath, keyPath };
  };
  const ca = await request('ca', []);
  const sign = (issuer: IssuedCertificate, name: string, extensions: readonly string[], days = DAYS) =>
    request(
      name,
      [
        ...['-CA', issuer.certPath, '-CAkey', issuer.keyPath],
        ...extensions.flatMap((extension) => ['-addext', extension]),
      ],
      days,
    );
  const toIssuer = (issuer: IssuedCertificate): TestIssuer => ({
    ca: issuer,
    issue: (name, subject = 'IP:127.0.0.1', days = DAYS) =>
      sign(issuer, name, [`subjectAltName=${subject}`, 'basicConstraints=critical,CA:FALSE'], days),
  });
  return {
    ...toIssuer(ca),
    issueAuthority: async (name) => toIssuer(await sign(ca, name, ['basicConstraints=critical,CA:TRUE'])),
    [Symbol.asyncDispose]: () => rm(directory, { recursive: true, force: true }),
  };
}
