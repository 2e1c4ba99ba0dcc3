import { type ClientCertificates, lastCall, type TlsAttack } from '../tls-attack.ts';
import { openWire } from '../wire.ts';

/** A call of a client with this certificate. With TLS 1.3 a client learns only after the handshake that it is refused. */
const presented = (
  name: string,
  certificate: keyof ClientCertificates | null,
  outcome: string,
  version: 'TLSv1.2' | 'TLSv1.3',
): TlsAttack => ({
  name: `${name}, ${version}`,
  source: 'RFC 8446 4.4.2.4; RFC 5280 6',
  act: async (target) => {
    const { strictUrl, ca, clients } = target;
    const own = certificate === null ? {} : clients[certificate];
    const opening = openWire(strictUrl, { ca, ...own, minVersion: version, maxVersion: version });
    const wire = await opening.catch(() => null);
    if (wire === null) return 'closed';
    using open = wire;
    open.tls.write(lastCall(target));
    const outcome = await open.untilClosed();
    return outcome === '200' ? '200' : 'closed';
  },
  outcome,
  effects: outcome === '200' ? 1 : 0,
});

/** What a client may present to a listener with `client_ca`. */
export const CLIENT_CERTIFICATES: readonly TlsAttack[] = (['TLSv1.3', 'TLSv1.2'] as const).flatMap(
  (version) => [
    presented('a sound certificate', 'sound', '200', version),
    presented('no certificate', null, 'closed', version),
    presented('one that has expired', 'expired', 'closed', version),
    presented('one that is not valid yet', 'notYetValid', 'closed', version),
    presented('one that signs itself', 'selfSigned', 'closed', version),
    presented('one of an unknown authority', 'unknown', 'closed', version),
    presented('one of another authority with the same name', 'foreign', 'closed', version),
    presented('one of an authority that may sign no others', 'byLeaf', 'closed', version),
    presented('one for servers only', 'forServers', 'closed', version),
    presented('a sound one behind 30 authorities', 'longChain', '200', version),
    presented('one of 200 KB', 'huge', 'closed', version),
  ],
);
