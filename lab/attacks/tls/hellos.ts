import { once } from 'node:events';
import {
  alpn,
  clientHello,
  extension,
  type Hello,
  helloMessage,
  int,
  keyShare,
  RECORD,
  record,
  records,
  serverName,
  sized,
  TLS12,
  VERSIONS,
  withTls13,
} from './client-hello.ts';
import { openTcp, send, toWords, untilClosed } from './send.ts';
import type { TlsAttack } from './tls-attack.ts';

/** A ClientHello, and what the gateway says to it: alerts have their numbers from RFC 8446 6. */
const hello = (source: string, outcome: string, name: string, given: Hello): TlsAttack => ({
  name,
  source,
  outcome,
  act: ({ url }) => send(url, clientHello(given)),
});
const tls13 = (...extensions: readonly Buffer[]): Hello => ({ extensions: withTls13(...extensions) });
const hex = (text: string) => Buffer.from(text, 'hex');

/** A ticket of nobody, with binders that no key has made (RFC 8446 4.2.11). It must be the last extension. */
const madeUpTickets = (count: number) =>
  extension(
    41,
    Buffer.concat([
      sized(
        2,
        ...Array.from({ length: count }, () =>
          Buffer.concat([sized(2, Buffer.alloc(64, 9)), int(0, 2), int(0, 2)]),
        ),
      ),
      sized(2, ...Array.from({ length: count }, () => sized(1, Buffer.alloc(32, 5)))),
    ]),
  );
const earlyData = extension(42, Buffer.alloc(0));

/** Names of servers. A name that no certificate has is no reason to refuse: the first certificate is used. */
const SERVER_NAMES: readonly TlsAttack[] = (
  [
    ['a name of 4 KiB', 'alert 112', serverName('a'.repeat(4096))],
    ['a name of 255 bytes', 'hello', serverName('a'.repeat(255))],
    ['a name with a NUL', 'alert 112', serverName('gateway\0.example')],
    ['an address', 'hello', serverName('127.0.0.1')],
    ['bytes that are no text', 'hello', serverName('\xff\xfe\x80')],
    ['a name with line ends', 'hello', serverName('a\r\nHost: b')],
    ['a star', 'hello', serverName('*')],
    ['__proto__', 'hello', serverName('__proto__')],
    ['an empty name', 'hello', serverName('')],
    ['an empty list', 'alert 50', extension(0, sized(2))],
    ['an empty extension', 'alert 50', extension(0, Buffer.alloc(0))],
    ['two names', 'alert 50', extension(0, sized(2, hex('0000016100000162')))],
    ['a name of an unknown type', 'alert 50', extension(0, sized(2, hex('07000161')))],
    ['a list that is longer than its extension', 'alert 50', extension(0, hex('ffff00000161'))],
  ] as const
).map(([name, outcome, given]) => hello('RFC 6066 3', outcome, `SNI: ${name}`, tls13(given)));

const PROTOCOLS: readonly TlsAttack[] = (
  [
    ['h2 only', 'alert 120', alpn('h2')],
    ['h2 before http/1.1', 'hello', alpn('h2', 'http/1.1')],
    ['255 bytes that are no text', 'alert 120', alpn('\xff'.repeat(255))],
    ['http/1.1 with a NUL', 'alert 120', alpn('http/1.1\0')],
    ['HTTP/1.1 in upper case', 'alert 120', alpn('HTTP/1.1')],
    ['8,000 names', 'alert 120', alpn(...Array<string>(8000).fill('x'))],
    ['an empty name', 'alert 50', alpn('')],
    ['an empty list', 'alert 50', alpn()],
    ['a list that is longer than its extension', 'alert 50', extension(16, hex('00ff0268'))],
  ] as const
).map(([name, outcome, given]) =>
  hello('RFC 7301 3; Brinkmann et al. 2021, "ALPACA"', outcome, `ALPN: ${name}`, tls13(given)),
);

const VERSIONS_OF_OLD: readonly TlsAttack[] = [
  hello('RFC 8996', 'alert 70', 'TLS 1.1', { version: 0x0302, extensions: TLS12 }),
  hello('RFC 8996; CVE-2011-3389', 'alert 70', 'TLS 1.0', { version: 0x0301, extensions: TLS12 }),
  hello('RFC 7568; CVE-2014-3566', 'alert 40', 'SSL 3.0', { version: 0x0300, extensions: TLS12 }),
  {
    name: 'SSL 2.0',
    source: 'RFC 6176; CVE-2016-0800',
    act: ({ url }) =>
      send(url, Buffer.concat([hex('802e0100020015000000100100800200800300'), Buffer.alloc(29)])),
    outcome: 'alert 70',
  },
  hello('RFC 7507', 'alert 86', 'a fall-back to TLS 1.2', {
    extensions: TLS12,
    ciphers: hex('c02bc02f5600'),
  }),
  hello('RFC 7465, RFC 5469; CVE-2015-0204, CVE-2016-2183', 'alert 40', 'only weak suites', {
    extensions: TLS12,
    ciphers: hex('00000003000400050008000a00140018002f0035009c009dc009c013'),
  }),
];

const BROKEN: readonly TlsAttack[] = [
  hello('RFC 8446 4.1.2', 'alert 50', 'no suites', { ciphers: Buffer.alloc(0) }),
  hello('RFC 8446 4.1.2', 'alert 50', 'half a suite', { ciphers: hex('1301c0') }),
  hello('RFC 8446 4.1.2', 'alert 50', 'a session id of 33 bytes', { sessionId: Buffer.alloc(33) }),
  hello('RFC 8446 4.1.2', 'alert 50', 'no compression method', { compressions: Buffer.alloc(0) }),
  hello('CVE-2012-4929', 'alert 47', 'only with compression', { compressions: hex('01') }),
  hello('RFC 8446 4.2', 'alert 47', 'an extension twice', tls13(serverName('a'), serverName('a'))),
  hello('RFC 8446 4.2', 'alert 50', 'an extension that is longer than the message', {
    extensions: hex('0000ffff00'),
  }),
  hello(
    'RFC 8446 4.2',
    'hello',
    '1,000 unknown extensions',
    tls13(...Array.from({ length: 1000 }, (_, index) => extension(0x4000 + index, Buffer.alloc(4)))),
  ),
  hello('RFC 7685', 'hello', '60 KB of padding', tls13(extension(21, Buffer.alloc(60_000)))),
  hello('RFC 8446 4.2.3', 'alert 109', 'no signature algorithms', {
    extensions: Buffer.concat([VERSIONS, keyShare()]),
  }),
  ...(
    [
      ['a share of zeros', keyShare(Buffer.alloc(32))],
      ['a share that is too short', keyShare(Buffer.alloc(5))],
      ['a share that is on no curve', keyShare(Buffer.concat([hex('04'), Buffer.alloc(64, 7)]), 0x17)],
      ['a share of an unknown group', keyShare(Buffer.alloc(5), 0x4444)],
    ] as const
  ).map(([name, share]) =>
    hello('RFC 8446 4.2.8; Biehl et al. 2000, "invalid curves"', 'alert 47', name, {
      extensions: Buffer.concat([TLS12, VERSIONS, share]),
    }),
  ),
];

/** Tickets and data of nobody: the handshake goes on as if they had not come, or ends. */
const RESUMPTION: readonly TlsAttack[] = [
  hello('RFC 5077', 'hello', 'a ticket of 4 KiB that is garbage, TLS 1.2', {
    extensions: Buffer.concat([TLS12, extension(35, Buffer.alloc(4096, 3))]),
  }),
  hello('RFC 8446 4.2.11', 'hello', 'a ticket that is garbage', {
    extensions: Buffer.concat([withTls13(), madeUpTickets(1)]),
  }),
  hello('RFC 8446 4.2.11', 'hello', '300 tickets that are garbage', {
    extensions: Buffer.concat([withTls13(), madeUpTickets(300)]),
  }),
  hello('RFC 8446 4.2.11', 'alert 47', 'a ticket before other extensions', tls13(madeUpTickets(1))),
  hello('RFC 8446 4.2.10', 'hello', 'early data without a ticket', tls13(earlyData)),
  hello(
    'RFC 8446 4.2.2',
    'hello',
    'a cookie that nobody gave',
    tls13(extension(44, sized(2, Buffer.alloc(1000, 3)))),
  ),
  {
    name: 'early data (0-RTT) with a ticket that is garbage',
    source: 'RFC 8446 4.2.10, 8',
    act: ({ url }) =>
      send(url, Buffer.concat([helloWithEarlyData(), records(RECORD.data, Buffer.alloc(4000, 7))])),
    outcome: 'hello',
  },
  {
    name: 'early data (0-RTT) of 16 MB',
    source: 'RFC 8446 4.2.10, 8',
    act: async ({ url }) => {
      const socket = await openTcp(url);
      socket.write(helloWithEarlyData());
      const [answer] = (await once(socket, 'data')) as [Buffer];
      // The gateway skips a part of it, then closes.
      socket.write(records(RECORD.data, Buffer.alloc(16_000_000, 7)));
      socket.resume();
      await untilClosed(socket);
      return toWords(answer);
    },
    outcome: 'hello',
  },
];

const helloWithEarlyData = () =>
  clientHello({ extensions: Buffer.concat([withTls13(), earlyData, madeUpTickets(1)]) });

const SPLIT: readonly TlsAttack[] = [
  {
    name: 'a hello in records of one byte',
    source: 'RFC 8446 5.1',
    act: ({ url }) => send(url, records(RECORD.handshake, helloMessage(), 1)),
    outcome: 'hello',
  },
  {
    name: 'a hello in records of one byte, each behind an empty one',
    source: 'RFC 8446 5.1',
    act: ({ url }) => {
      const empty = record(RECORD.handshake, Buffer.alloc(0));
      const bytes = [...helloMessage()].map((byte) => record(RECORD.handshake, Buffer.from([byte])));
      return send(url, Buffer.concat(bytes.flatMap((each) => [empty, each])));
    },
    outcome: 'hello',
  },
];

/** What a client says first, broken or strange. */
export const HELLOS: readonly TlsAttack[] = [
  ...SERVER_NAMES,
  ...PROTOCOLS,
  ...VERSIONS_OF_OLD,
  ...BROKEN,
  ...RESUMPTION,
  ...SPLIT,
];
