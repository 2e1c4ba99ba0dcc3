import { X509Certificate } from 'node:crypto';
import type { Config } from '#config';
import { type Certificates, pairsOf } from './certificate-files.ts';

/** A certificate that has expired, or will soon. */
export interface ExpiringCertificate {
  /** The key of the configuration, and the file. */
  readonly where: string;
  /** In UTC, such as `2027-01-31`. */
  readonly day: string;
  readonly isExpired: boolean;
}

/** Time enough to find out why it was not renewed. */
const SOON_MS = 14 * 24 * 3600 * 1000;

/** Finds the gateway's own certificates, for its listeners and for its replicas, that are at their end. */
export function findExpiring(
  { gateway, replicas }: Config,
  certificates: Certificates,
  nowMs: number,
): readonly ExpiringCertificate[] {
  const ofListener = (tls: Config['gateway']['adminTls'], key: string, read: Certificates['listen']) =>
    (tls === null ? [] : pairsOf(tls)).map(({ cert }, index) => ({
      key: `${key}.cert`,
      path: cert,
      pem: read?.pairs[index]?.cert,
    }));
  const ofReplicas = replicas.map(({ name, tls }, index) => ({
    key: `replicas: ${name}: tls.cert`,
    path: tls?.cert,
    pem: certificates.replicas[index]?.tls?.cert,
  }));
  return [
    ...ofListener(gateway.tls, 'gateway.tls', certificates.listen),
    ...ofListener(gateway.adminTls, 'gateway.admin_tls', certificates.admin),
    ...ofReplicas,
  ].flatMap(({ key, path, pem }) => {
    if (typeof pem !== 'string') return [];
    const { validToDate } = new X509Certificate(pem);
    const leftMs = validToDate.getTime() - nowMs;
    if (leftMs > SOON_MS) return [];
    return [
      { where: `${key}: ${path}`, day: validToDate.toISOString().slice(0, 10), isExpired: leftMs <= 0 },
    ];
  });
}
