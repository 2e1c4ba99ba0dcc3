import { randomBytes } from 'node:crypto';
import type { Socket } from 'node:net';
import { TLSSocket, type TlsOptions } from 'node:tls';
import { type Attack, CHAT_LINE } from '../../attack.ts';
import { RECORD, record } from '../client-hello.ts';
import type { ReplicaCertificates } from './issue-replica-certificates.ts';

/** An attack of a replica that is reached with https. */
export interface TlsReplicaAttack extends Attack {
  /** As `onConnection`. */
  readonly serve: (tcp: Socket, certificates: ReplicaCertificates) => Socket | null;
}

const SOURCE = 'RFC 8446 4.4.2; RFC 5280 6; RFC 9110 4.3.4';
const OK = 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n';

/** Speaks TLS as a server with one of the certificates. */
export const speakTls = (
  tcp: Socket,
  certificates: ReplicaCertificates,
  name: keyof ReplicaCertificates = 'sound',
  options: TlsOptions = {},
): Socket => new TLSSocket(tcp, { isServer: true, ...certificates[name], ...options }) as Socket;

/** A replica with this certificate: the gateway sends it nothing. */
const refused = (name: string, certificate: keyof ReplicaCertificates): TlsReplicaAttack => ({
  name: `a replica with a certificate ${name}`,
  source: SOURCE,
  serve: (tcp, certificates) => speakTls(tcp, certificates, certificate),
  statuses: [502],
  closes: false,
});

/** A replica that handshakes like this. */
const handshakes = (
  name: string,
  source: string,
  serve: TlsReplicaAttack['serve'],
  more: Partial<Attack> = {},
): TlsReplicaAttack => ({
  name: `a replica that ${name}`,
  source,
  serve,
  statuses: [502],
  closes: false,
  ...more,
});

/** A replica whose handshake is sound, and that then does this with a request and its TCP connection. */
const answers = (
  name: string,
  source: string,
  answer: (tls: Socket, tcp: Socket) => void,
  more: Partial<Attack>,
): TlsReplicaAttack => {
  const tcpOf = new WeakMap<Socket, Socket>();
  return handshakes(
    name,
    source,
    (tcp, certificates) => {
      const tls = speakTls(tcp, certificates);
      tcpOf.set(tls, tcp);
      return tls;
    },
    {
      replica: (tls) => answer(tls, tcpOf.get(tls) as Socket),
      statuses: [200],
      seen: [CHAT_LINE],
      ...more,
    },
  );
};

const says = (bytes: Buffer) => (tcp: Socket) => {
  tcp.once('data', () => tcp.end(bytes));
  return null;
};

/** Writes the record without end, as fast as it is taken. */
const floods = (bytes: Buffer) => (tcp: Socket) => {
  const write = () => {
    while (!tcp.destroyed && tcp.write(bytes));
  };
  tcp.on('drain', write).once('data', write);
  return null;
};

/** What a replica can do to the gateway below HTTP. */
export const TLS_REPLICA: readonly TlsReplicaAttack[] = [
  refused('that has expired', 'expired'),
  refused('that is not valid yet', 'notYetValid'),
  refused('that signs itself', 'selfSigned'),
  refused('of an unknown authority', 'unknown'),
  refused('of another authority with the same name', 'foreign'),
  refused('of an authority that may sign no others', 'byLeaf'),
  refused('of an authority that has expired', 'byExpired'),
  refused('of an authority that is not in the chain', 'withoutChain'),
  refused('of an authority that may not sign for its address', 'notForTheAddress'),
  refused('for clients only', 'forClients'),
  refused('for another name and address', 'otherName'),
  refused('whose common name is the address', 'commonName'),
  refused('that has the address as a name, and a star', 'addressAsName'),
  refused('of 200 KB', 'huge'),
  handshakes('speaks only TLS 1.1', 'RFC 8996', (tcp, certificates) =>
    speakTls(tcp, certificates, 'sound', {
      minVersion: 'TLSv1',
      maxVersion: 'TLSv1.1',
      ciphers: 'DEFAULT@SECLEVEL=0',
    }),
  ),
  handshakes(
    'speaks only TLS 1.2',
    'RFC 5246',
    (tcp, certificates) => speakTls(tcp, certificates, 'sound', { maxVersion: 'TLSv1.2' }),
    { statuses: [200], seen: [CHAT_LINE] },
  ),
  handshakes('offers only h2', 'RFC 7301 3.2; Brinkmann et al. 2021, "ALPACA"', (tcp, certificates) =>
    speakTls(tcp, certificates, 'sound', { ALPNProtocols: ['h2'] }),
  ),
  handshakes('speaks HTTP without TLS', 'RFC 9112', says(Buffer.from(`${OK}Content-Length: 2\r\n\r\n{}`))),
  handshakes('answers a hello with garbage', 'RFC 8446 5.1', says(randomBytes(4096))),
  handshakes(
    'answers a hello with a fatal alert',
    'RFC 8446 6.2',
    says(record(RECORD.alert, Buffer.from([2, 40]))),
  ),
  handshakes('closes at once', 'RFC 9293 3.6', (tcp) => {
    tcp.end();
    return null;
  }),
  handshakes('resets within the handshake', 'RFC 9293 3.5.2', (tcp) => {
    tcp.once('data', () => tcp.resetAndDestroy());
    return null;
  }),
  handshakes('says nothing to a hello', 'Hansen 2009, "Slowloris"', (tcp) => {
    tcp.resume();
    return null;
  }),
  handshakes(
    'answers a hello with empty records without end',
    'RFC 8446 5.1',
    floods(record(RECORD.handshake, Buffer.alloc(0))),
  ),
  handshakes(
    'answers a hello with warnings without end',
    'CVE-2016-8610',
    floods(record(RECORD.alert, Buffer.from([1, 90]))),
  ),
  handshakes(
    'sends a ServerHello of 16 MB',
    'RFC 8446 4.1.3',
    floods(record(RECORD.handshake, Buffer.concat([Buffer.from('02ffffff', 'hex'), Buffer.alloc(16_000)]))),
  ),
  answers(
    'ends without close_notify within a body',
    'RFC 8446 6.1; RFC 9112 9.8',
    (tls, tcp) => tls.write(`${OK}Content-Length: 100\r\n\r\n{}`, () => tcp.end()),
    { isComplete: false, closes: true },
  ),
  answers(
    'ends without close_notify behind a body without a length',
    'RFC 8446 6.1; RFC 9112 9.8; truncation attacks, Bhargavan et al. 2014',
    (tls, tcp) => tls.write(`${OK}\r\n{"a":1`, () => tcp.end()),
    { isComplete: false, closes: true },
  ),
  answers(
    'sends a record within a body that no key has made',
    'RFC 8446 5.2',
    (tls, tcp) =>
      tls.write(`${OK}Content-Length: 100\r\n\r\n{}`, () =>
        tcp.write(record(RECORD.data, randomBytes(100), 0x0303)),
      ),
    { isComplete: false, closes: true },
  ),
];
