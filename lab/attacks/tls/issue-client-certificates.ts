import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { IssuedCertificate } from '../../../test/support/certificates.ts';
import type { ClientCertificates } from './tls-attack.ts';

const run = promisify(execFile);

type Signer = Pick<IssuedCertificate, 'certPath' | 'keyPath'>;

/** Authorities between that of the gateway and the client. */
const CHAIN_LENGTH = 30;
/** More than OpenSSL takes of a peer: 100 KiB. */
const HUGE_NAMES = Array.from({ length: 6_000 }, (_, index) => `DNS:${index}.${'x'.repeat(20)}.example`);

const FOR_CLIENTS = ['basicConstraints=critical,CA:FALSE', 'extendedKeyUsage=clientAuth'];

/** Issues the certificates that clients present, into a folder. One key serves them all. */
export async function issueClientCertificates(
  authority: Signer,
  folder: string,
): Promise<ClientCertificates> {
  const keyPath = join(folder, 'client.key');
  await run('openssl', [
    'genpkey',
    '-algorithm',
    'EC',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-out',
    keyPath,
  ]);
  const publicKeyPath = join(folder, 'client.pub');
  await run('openssl', ['pkey', '-in', keyPath, '-pubout', '-out', publicKeyPath]);
  const key = await readFile(keyPath, 'utf8');

  /** A certificate for that key. `signer`: null for one that it signs itself. Returns its path. */
  async function issue(
    name: string,
    signer: Signer | null,
    { extensions = FOR_CLIENTS, days = 2, subject = `client ${name}` } = {},
  ): Promise<string> {
    const extensionsPath = join(folder, `${name}.ext`);
    const certPath = join(folder, `${name}.pem`);
    await writeFile(extensionsPath, extensions.join('\n'));
    const by =
      signer === null
        ? ['-signkey', keyPath]
        : ['-CA', signer.certPath, '-CAkey', signer.keyPath, '-force_pubkey', publicKeyPath];
    const options = ['-new', '-set_serial', '1', '-subj', `/CN=${subject}`, '-days', String(days)];
    await run('openssl', ['x509', ...options, ...by, '-extfile', extensionsPath, '-out', certPath]);
    return certPath;
  }
  const read = async (...paths: readonly string[]) => {
    const certificates = await Promise.all(paths.map((path) => readFile(path, 'utf8')));
    return { cert: certificates.join(''), key };
  };

  const asAuthority = { extensions: ['basicConstraints=critical,CA:TRUE'] };
  const readLongChain = async () => {
    const chain: string[] = [];
    let signer = authority;
    for (let level = 0; level < CHAIN_LENGTH; level++) {
      signer = { certPath: await issue(`level-${level}`, signer, asAuthority), keyPath };
      chain.unshift(signer.certPath);
    }
    return await read(await issue('leaf', signer), ...chain);
  };
  const readForeign = async () => {
    // It has the name of the gateway's authority, and another key.
    const impostor = await issue('impostor', null, { ...asAuthority, subject: 'spangate ca' });
    return await read(await issue('foreign', { certPath: impostor, keyPath }), impostor);
  };
  const readOne = async (...given: Parameters<typeof issue>) => await read(await issue(...given));
  const [sound, expired, selfSigned, foreign, forServers, longChain, huge] = await Promise.all([
    readOne('sound', authority),
    readOne('expired', authority, { days: -1 }),
    readOne('self-signed', null),
    readForeign(),
    readOne('for-servers', authority, {
      extensions: ['basicConstraints=critical,CA:FALSE', 'extendedKeyUsage=serverAuth'],
    }),
    readLongChain(),
    readOne('huge', authority, { extensions: [...FOR_CLIENTS, `subjectAltName=${HUGE_NAMES.join(',')}`] }),
  ]);
  return { sound, expired, selfSigned, foreign, forServers, longChain, huge };
}
