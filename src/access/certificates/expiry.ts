import { X509Certificate } from 'node:crypto';
import type { Config } from '#config';
import type { Certificates } from './certificate-files.ts';

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
  { gateway, replicas, services }: Config,
  certificates: Certificates,
  nowMs: number,
): readonly ExpiringCertificate[] {
  const ofListener = (tls: Config['gateway']['tls'], key: string, read: Certificates['listen']) =>
    (tls?.pairs ?? []).map(({ cert }, index) => ({
      key: `${key}.cert`,
      path: cert,
      pem: read?.pairs[index]?.cert,
    }));
  const ofServers = (
    given: Config['replicas'] | Config['services'],
    read: Certificates['replicas'] | Certificates['services'],
  ) =>
    given.map(({ name, tlsFiles }, index) => ({
      key: `replicas: ${name}: tls.cert`,
      path: tlsFiles?.cert,
      pem: read[index]?.tls?.cert,
    }));
  return [
    ...ofListener(gateway.tls, 'gateway.tls', certificates.listen),
    ...ofListener(gateway.adminTls, 'gateway.admin_tls', certificates.admin),
    ...ofServers(replicas, certificates.replicas),
    ...ofServers(services, certificates.services),
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
