import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { BODY } from '../attack.ts';
import { clientHello, RECORD, record } from './client-hello.ts';
import { openSslClient } from './openssl-client.ts';
import { callWith, keptCall, lastCall, lastGet, type TlsAttack, type TlsTarget } from './tls-attack.ts';
import { type Change, openWire, type Wire } from './wire.ts';

/** Opens a connection, and lets the attack do its part. */
const through =
  (act: (wire: Wire, target: TlsTarget) => void | Promise<void>) =>
  async (target: TlsTarget): Promise<string> => {
    using wire = await openWire(target.url, { ca: target.ca });
    await act(wire, target);
    return await wire.untilClosed();
  };

/** Changes the record of a whole call on its way. */
const changed = (source: string, outcome: string, name: string, change: Change): TlsAttack => ({
  name,
  source,
  outcome,
  act: through(({ tls, change: use }, target) => {
    use(change);
    tls.write(keptCall(target));
  }),
});

/** Sends the head of a call, then lets the attack end the connection within the body. */
const inBody = (source: string, outcome: string, name: string, end: Change): TlsAttack => ({
  name,
  source,
  outcome,
  act: through(async ({ tls, change }, target) => {
    const head = callWith(target, [`Content-Length: ${BODY.length}`], '');
    await new Promise((resolve) => tls.write(head, resolve));
    change(end);
    tls.write(BODY);
  }),
});

const NOTHING = Buffer.alloc(0);
const half = (bytes: Buffer) => bytes.subarray(0, bytes.length >> 1);
const ends: Change = (bytes, tcp) => {
  tcp.end(half(bytes));
  return NOTHING;
};
const resets: Change = (bytes, tcp) => {
  tcp.write(half(bytes), () => tcp.resetAndDestroy());
  return NOTHING;
};
const flips = (at: number): Change => {
  return (bytes) => {
    const copy = Buffer.from(bytes);
    const index = at < 0 ? copy.length + at : at;
    copy[index] = (copy[index] ?? 0) ^ 1;
    return copy;
  };
};

/** A bad record is answered with alert 20 (bad_record_mac), which OpenSSL names so. */
const BAD_MAC = 'ERR_SSL_SSL/TLS_ALERT_BAD_RECORD_MAC';

/** What a client does when its handshake is complete. */
export const CONNECTIONS: readonly TlsAttack[] = [
  {
    name: 'renegotiation by the client, TLS 1.2',
    source: 'CVE-2011-1473, CVE-2009-3555',
    act: async ({ url, ca }) => {
      await using client = await openSslClient(url, ca, ['-tls1_2']);
      client.write('R\n');
      await client.closed;
      return client.says('no renegotiation') ? 'refused' : 'renegotiated';
    },
    outcome: 'refused',
  },
  {
    name: '200 key updates, TLS 1.3',
    source: 'RFC 8446 4.6.3',
    act: async (target) => {
      await using client = await openSslClient(target.url, target.ca, ['-tls1_3']);
      for (let count = 1; count <= 200; count++) {
        client.write('K\n');
        await client.until('KEYUPDATE', count);
      }
      client.write(lastGet(target));
      await client.until('HTTP/1.1 200', 1);
      return '200';
    },
    outcome: '200',
  },
  changed('RFC 8446 5.2', BAD_MAC, 'a record with one bit changed', flips(-1)),
  changed('RFC 8446 5.2', BAD_MAC, 'a record whose length is one less', flips(4)),
  changed('RFC 8446 5.2', 'ERR_SSL_SSL/TLS_ALERT_UNEXPECTED_MESSAGE', 'a record of another type', flips(0)),
  {
    name: 'a record again, when it is answered',
    source: 'RFC 8446 5.2, 8',
    act: through(async ({ tls, tcp, change }, target) => {
      let record: Buffer = NOTHING;
      change((bytes) => {
        record = bytes;
        return bytes;
      });
      tls.write(keptCall(target));
      await once(tls, 'data');
      tcp.write(record);
    }),
    outcome: '200',
    effects: 1,
  },
  changed('RFC 8446 5.2', BAD_MAC, 'a record that no key has made', (bytes) =>
    Buffer.concat([record(RECORD.data, randomBytes(1000), 0x0303), bytes]),
  ),
  changed('RFC 8446 5.2', 'ERR_SSL_TLSV1_ALERT_RECORD_OVERFLOW', 'a record of 64 KiB', () =>
    record(RECORD.data, randomBytes(65_535), 0x0303),
  ),
  changed('RFC 8446 5', 'ERR_SSL_SSL/TLS_ALERT_UNEXPECTED_MESSAGE', 'a hello without encryption', (bytes) =>
    Buffer.concat([clientHello(), bytes]),
  ),
  changed('RFC 8446 6', 'ERR_SSL_SSL/TLS_ALERT_UNEXPECTED_MESSAGE', 'an alert without encryption', (bytes) =>
    Buffer.concat([record(RECORD.alert, Buffer.from('0100', 'hex'), 0x0303), bytes]),
  ),
  inBody('RFC 8446 6.1', 'closed', 'an end within a record of the body', ends),
  inBody('RFC 8446 6.1', 'closed', 'a reset within a record of the body', resets),
  inBody('RFC 8446 6.1', '408', 'silence within a record of the body', half),
  inBody('RFC 8446 6.1', 'closed', 'an end between records of the body, without close_notify', (_, tcp) => {
    tcp.end();
    return NOTHING;
  }),
  {
    name: 'an end within chunks, without close_notify',
    source: 'RFC 8446 6.1; truncation attacks, Bhargavan et al. 2014',
    act: through(async ({ tls, tcp }, target) => {
      const text = callWith(
        target,
        ['Transfer-Encoding: chunked'],
        `${BODY.length.toString(16)}\r\n${BODY}\r\n`,
      );
      await new Promise((resolve) => tls.write(text, resolve));
      tcp.end();
    }),
    outcome: 'closed',
  },
  {
    name: 'an end within the head, without close_notify',
    source: 'RFC 8446 6.1; truncation attacks, Bhargavan et al. 2014',
    act: through(async ({ tls, tcp }, target) => {
      await new Promise((resolve) => tls.write(target.call.slice(0, 60), resolve));
      tcp.end();
    }),
    outcome: 'closed',
    adminOutcome: '400',
  },
  ...resumptions('TLSv1.3'),
  ...resumptions('TLSv1.2'),
];

/** A session that was good: resumed as it is, and with a ticket in which one bit was changed. */
function resumptions(version: 'TLSv1.3' | 'TLSv1.2'): readonly TlsAttack[] {
  const source = 'RFC 5077, RFC 8446 4.6.1';
  const versions = { minVersion: version, maxVersion: version } as const;
  const resume = (change: (session: Buffer, ticket: Buffer) => Buffer) => async (target: TlsTarget) => {
    const { url, ca } = target;
    using first = await openWire(url, { ca, ...versions });
    const arrived = version === 'TLSv1.3' ? once(first.tls, 'session') : null;
    first.tls.write(lastGet(target));
    await arrived;
    const session = first.tls.getSession() ?? NOTHING;
    const ticket = first.tls.getTLSTicket() ?? NOTHING;
    await first.untilClosed();
    using second = await openWire(url, { ca, ...versions, session: change(session, ticket) });
    const handshake = second.tls.isSessionReused() ? 'resumed' : 'whole handshake';
    second.tls.write(lastCall(target));
    return `${handshake}, ${await second.untilClosed()}`;
  };
  const at = (where: (ticket: Buffer) => number) => (session: Buffer, ticket: Buffer) =>
    flips(session.indexOf(ticket) + where(ticket))(session, null as never);
  const attack = (name: string, outcome: string, change: (session: Buffer, ticket: Buffer) => Buffer) => ({
    name: `${name}, ${version}`,
    source,
    outcome: `${outcome}, 200`,
    effects: 1,
    act: resume(change),
  });
  return [
    attack('a ticket as it was given', 'resumed', (session) => session),
    attack(
      'a ticket with another key name',
      'whole handshake',
      at(() => 0),
    ),
    attack(
      'a ticket with another vector',
      'whole handshake',
      at(() => 20),
    ),
    attack(
      'a ticket with one bit changed',
      'whole handshake',
      at((ticket) => ticket.length >> 1),
    ),
    attack(
      'a ticket with another end',
      'whole handshake',
      at((ticket) => ticket.length - 1),
    ),
  ];
}
