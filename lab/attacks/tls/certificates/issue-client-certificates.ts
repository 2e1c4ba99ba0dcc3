import type { ClientCertificates } from '../tls-attack.ts';
import { AUTHORITY, type Contents, createIssuer, type Signer } from './issuer.ts';

/** Authorities between that of the gateway and the client. */
const CHAIN_LENGTH = 30;
/** More than OpenSSL takes of a peer: 100 KiB. */
const HUGE_NAMES = Array.from({ length: 6_000 }, (_, index) => `DNS:${index}.${'x'.repeat(20)}.example`);
const FOR_CLIENTS = ['basicConstraints=critical,CA:FALSE', 'extendedKeyUsage=clientAuth'];
const FOR_SERVERS = ['basicConstraints=critical,CA:FALSE', 'extendedKeyUsage=serverAuth'];

/** Issues the certificates that clients present, into a folder. One key serves them all. */
export async function issueClientCertificates(
  authority: Signer,
  folder: string,
): Promise<ClientCertificates> {
  const { keyPath, issue, read } = await createIssuer(folder);
  const issueOne = (name: string, signer: Signer | null, contents: Partial<Contents> = {}) =>
    issue(name, signer, { extensions: FOR_CLIENTS, subject: `client ${name}`, ...contents });
  const readOne = async (...given: Parameters<typeof issueOne>) => await read(await issueOne(...given));

  const readLongChain = async () => {
    const chain: string[] = [];
    let signer = authority;
    for (let level = 0; level < CHAIN_LENGTH; level++) {
      signer = { certPath: await issueOne(`level-${level}`, signer, { extensions: AUTHORITY }), keyPath };
      chain.unshift(signer.certPath);
    }
    return await read(await issueOne('leaf', signer), ...chain);
  };
  /** One of another authority with this name. */
  const readForeign = async (name: string, subject: string) => {
    const root = await issueOne(`${name}-root`, null, { extensions: AUTHORITY, subject });
    return await read(await issueOne(name, { certPath: root, keyPath }), root);
  };
  const readByLeaf = async () => {
    const leaf = await issueOne('no-authority', authority);
    return await read(await issueOne('by-leaf', { certPath: leaf, keyPath }), leaf);
  };
  const [sound, expired, notYetValid, selfSigned, unknown, foreign, byLeaf, forServers, longChain, huge] =
    await Promise.all([
      readOne('sound', authority),
      readOne('expired', authority, { days: [-2, -1] }),
      readOne('not-yet-valid', authority, { days: [1, 2] }),
      readOne('self-signed', null),
      readForeign('unknown', 'an unknown ca'),
      readForeign('foreign', 'spangate ca'),
      readByLeaf(),
      readOne('for-servers', authority, { extensions: FOR_SERVERS }),
      readLongChain(),
      readOne('huge', authority, { extensions: [...FOR_CLIENTS, `subjectAltName=${HUGE_NAMES.join(',')}`] }),
    ]);
  return { sound, expired, notYetValid, selfSigned, unknown, foreign, byLeaf, forServers, longChain, huge };
}
