import { AUTHORITY, type Contents, createIssuer, type Pair, type Signer } from '../certificates/issuer.ts';

const HUGE_NAMES = Array.from({ length: 6_000 }, (_, index) => `DNS:${index}.${'x'.repeat(20)}.example`);
const LEAF = 'basicConstraints=critical,CA:FALSE';
const ADDRESS = 'subjectAltName=IP:127.0.0.1';
const FOR_SERVERS = [LEAF, 'extendedKeyUsage=serverAuth', ADDRESS];

/** Sound and unsound certificates of a replica at 127.0.0.1. */
export type ReplicaCertificates = Awaited<ReturnType<typeof issueReplicaCertificates>>;

/** Issues them into a folder. One key serves them all. */
export async function issueReplicaCertificates(authority: Signer, folder: string) {
  const { keyPath, issue, read } = await createIssuer(folder);
  const readOne = async (name: string, signer: Signer | null, contents: Partial<Contents> = {}) =>
    await read(await issue(name, signer, { extensions: FOR_SERVERS, ...contents }));
  const forNames = (names: string) => ({ extensions: [LEAF, `subjectAltName=${names}`] });
  /** One of another authority, with its certificate. */
  const readBelow = async (name: string, by: Signer | null, contents: Partial<Contents>): Promise<Pair> => {
    const above = await issue(`${name}-above`, by, { extensions: AUTHORITY, ...contents });
    return await read(await issue(name, { certPath: above, keyPath }, { extensions: FOR_SERVERS }), above);
  };
  const readWithoutChain = async () => {
    const above = await issue('absent', authority, { extensions: AUTHORITY });
    return await readOne('no-chain', { certPath: above, keyPath });
  };
  return {
    sound: await readOne('sound', authority),
    expired: await readOne('expired', authority, { days: [-2, -1] }),
    notYetValid: await readOne('not-yet-valid', authority, { days: [1, 2] }),
    selfSigned: await readOne('self-signed', null),
    unknown: await readBelow('unknown', null, { subject: 'an unknown ca' }),
    foreign: await readBelow('foreign', null, { subject: 'spangate ca' }),
    byLeaf: await readBelow('by-leaf', authority, { extensions: FOR_SERVERS }),
    byExpired: await readBelow('by-expired', authority, { days: [-2, -1] }),
    withoutChain: await readWithoutChain(),
    notForTheAddress: await readBelow('constrained', authority, {
      extensions: [...AUTHORITY, 'nameConstraints=critical,excluded;IP:127.0.0.0/255.0.0.0'],
    }),
    forClients: await readOne('for-clients', authority, {
      extensions: [LEAF, 'extendedKeyUsage=clientAuth', ADDRESS],
    }),
    otherName: await readOne('other-name', authority, forNames('DNS:other.example.test,IP:127.0.0.2')),
    commonName: await readOne('common-name', authority, { extensions: [LEAF], subject: '127.0.0.1' }),
    addressAsName: await readOne('address-as-name', authority, forNames('DNS:127.0.0.1,DNS:*')),
    huge: await readOne('huge', authority, {
      extensions: [LEAF, `${ADDRESS},${HUGE_NAMES.join(',')}`],
    }),
  } as const;
}
