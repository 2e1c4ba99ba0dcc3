import { isIP } from 'node:net';
import { connect, type PeerCertificate } from 'node:tls';
import type { ReplicaConfig } from '#replicas/terms';

/** How long a server may take to show whether it speaks TLS. */
const HANDSHAKE_TIMEOUT_MS = 2_000;

/**
 * Makes a TLS handshake with a replica and closes the connection. Resolves with the certificate that the server showed,
 * whether it is trusted or not; null: it does not speak TLS, or did not answer within 2 seconds. Nothing else is sent.
 */
export function shakeHands(config: ReplicaConfig): Promise<PeerCertificate | null> {
  const { host, port } = addressOf(config);
  const bareHost = host.replace(/^\[|\]$/g, '');
  const serverName = config.tlsName ?? bareHost;
  return new Promise((resolve) => {
    const socket = connect({
      host: bareHost,
      port,
      rejectUnauthorized: false,
      timeout: HANDSHAKE_TIMEOUT_MS,
      ...(isIP(serverName) === 0 ? { servername: serverName } : {}),
    });
    socket.unref();
    const finish = (certificate: PeerCertificate | null) => {
      socket.destroy();
      resolve(certificate);
    };
    socket
      .once('secureConnect', () => finish(socket.getPeerCertificate()))
      .once('timeout', () => finish(null))
      .on('error', () => finish(null))
      .once('close', () => resolve(null));
  });
}

/** The host, IPv6 in brackets, and the port of a replica's url. */
export function addressOf({ url }: ReplicaConfig): { readonly host: string; readonly port: number } {
  const { protocol, hostname, port } = new URL(url);
  return { host: hostname, port: Number(port || (protocol === 'https:' ? '443' : '80')) };
}
