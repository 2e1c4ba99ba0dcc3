import { X509Certificate } from 'node:crypto';
import type { Certificates } from './certificate-files.ts';

/** When a certificate that is in use ends. */
export interface CertificateEnd {
  /** Who uses it, and its name: `listen (CN=gateway.example)`. */
  readonly subject: string;
  /** Milliseconds since 1970. */
  readonly endMs: number;
}

/** What a file of certificates is for. */
interface UsedFile {
  readonly use: string;
  readonly pem: string;
  /** Authorities are trusted next to each other: an old one may end. In a chain every certificate must be valid. */
  readonly isChain: boolean;
}

/** Creates what lists the certificates in use, those that end first before the others. It reads each text once. */
export function createCertificateLister(): (certificates: Certificates) => readonly CertificateEnd[] {
  let known: ReadonlyMap<string, readonly ParsedCertificate[]> = new Map();
  return (certificates) => {
    const parsed = new Map<string, readonly ParsedCertificate[]>();
    const ends = toFiles(certificates).map(({ use, pem, isChain }) => {
      const list = parsed.get(pem) ?? known.get(pem) ?? parseAll(pem);
      parsed.set(pem, list);
      const { name, endMs } = (isChain ? list.at(0) : list.at(-1)) ?? NOTHING;
      return { subject: `${use} (${name})`, endMs };
    });
    known = parsed;
    return ends.toSorted((a, b) => a.endMs - b.endMs);
  };
}

function toFiles({ listen, admin, replicas }: Certificates): readonly UsedFile[] {
  const files: UsedFile[] = [];
  for (const [use, material] of Object.entries({ listen, admin })) {
    for (const { cert } of material?.pairs ?? []) files.push({ use, pem: cert, isChain: true });
    const clientCa = material?.clientCa ?? null;
    if (clientCa !== null) files.push({ use: `${use} client_ca`, pem: clientCa, isChain: false });
  }
  // Replicas usually share their files: each file is told of once.
  const seen = new Map<string, { readonly file: UsedFile; count: number }>();
  const note = (file: UsedFile) => {
    const key = `${file.isChain} ${file.pem}`;
    const before = seen.get(key);
    if (before === undefined) seen.set(key, { file, count: 1 });
    else before.count += 1;
  };
  for (const { name, tls } of replicas) {
    if (tls?.cert) note({ use: `replica ${name}`, pem: tls.cert, isChain: true });
    if (tls?.ca) note({ use: `replica ${name} ca`, pem: tls.ca, isChain: false });
  }
  for (const { file, count } of seen.values()) {
    files.push(count === 1 ? file : { ...file, use: `${file.use} and ${count - 1} more` });
  }
  return files;
}

interface ParsedCertificate {
  readonly name: string;
  readonly endMs: number;
}

/** A text without certificates is refused before it comes into use. */
const NOTHING: ParsedCertificate = { name: 'unreadable', endMs: Number.POSITIVE_INFINITY };

const BLOCK = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/** The certificates of a file, those that end first before the others. */
function parseAll(pem: string): readonly ParsedCertificate[] {
  const parsed = (pem.match(BLOCK) ?? []).flatMap((block) => parse(block) ?? []);
  return parsed.sort((a, b) => a.endMs - b.endMs);
}

/** Null: TLS skips it as well. */
function parse(block: string): ParsedCertificate | null {
  try {
    const { subject, serialNumber, validToDate } = new X509Certificate(block);
    const name = /^CN=.+$/m.exec(subject)?.[0] ?? `serial ${serialNumber}`;
    return { name, endMs: validToDate.getTime() };
  } catch {
    return null;
  }
}
