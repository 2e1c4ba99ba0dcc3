import { randomBytes } from 'node:crypto';
import { clientHello, helloMessage, message, RECORD, record, TLS12 } from './client-hello.ts';
import { openTcp, readToClose, send } from './send.ts';
import type { TlsAttack } from './tls-attack.ts';

const sent = (source: string, outcome: string, name: string, make: () => Buffer): TlsAttack => ({
  name,
  source,
  outcome,
  act: ({ url }) => send(url, make()),
});
const hex = (text: string) => Buffer.from(text, 'hex');
const many = (count: number, piece: Buffer) => Buffer.concat(Array<Buffer>(count).fill(piece));
const hello12 = () => clientHello({ extensions: TLS12 });
const CHANGE = record(RECORD.cipherSpec, hex('01'));
const WARNING = record(RECORD.alert, hex('015a'));

/** Bytes of other protocols, and records that come when or how they must not. */
export const GARBAGE: readonly TlsAttack[] = [
  sent('RFC 9112', 'closed', 'HTTP/1.1 without TLS', () =>
    Buffer.from('GET /healthz HTTP/1.1\r\nHost: g\r\n\r\n'),
  ),
  sent('RFC 9113 3.4', 'closed', 'HTTP/2 without TLS', () => Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')),
  sent('RFC 4253 4.2', 'closed', 'SSH', () => Buffer.from('SSH-2.0-OpenSSH_9.9\r\n')),
  sent('PROXY protocol', 'closed', 'a PROXY header', () =>
    Buffer.from('PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n'),
  ),
  sent('RFC 8446 5.1', 'closed', 'zeros', () => Buffer.alloc(16_384)),
  sent('RFC 8446 5.1', 'closed', 'bytes of 255', () => Buffer.alloc(16_384, 255)),
  {
    name: 'TLS to the listener without TLS',
    source: 'RFC 9112 2.2',
    act: async ({ plainUrl }) => {
      const socket = await openTcp(plainUrl);
      socket.write(clientHello());
      return (await readToClose(socket)).subarray(0, 12).toString();
    },
    outcome: 'HTTP/1.1 400',
  },
  sent('RFC 8446 5.1', 'alert 22', 'a record that is too long', () =>
    record(RECORD.handshake, Buffer.alloc(16_700)),
  ),
  sent('RFC 8446 5.1', 'alert 10', 'a record of an unknown type', () => record(99, randomBytes(10))),
  sent('RFC 8446 5.1', 'closed', 'a record of an unknown version', () =>
    record(RECORD.handshake, helloMessage(), 0xffff),
  ),
  sent('RFC 8446 4.1.2', 'alert 47', 'a hello of 16 MB', () =>
    record(RECORD.handshake, Buffer.concat([hex('01ffffff'), Buffer.alloc(16_000)])),
  ),
  sent('RFC 8446 4', 'alert 10', '1,000 empty records', () =>
    many(1000, record(RECORD.handshake, Buffer.alloc(0))),
  ),
  sent('RFC 8446 5.2', 'alert 10', 'data first', () => record(RECORD.data, randomBytes(100))),
  sent('RFC 5246 7.4.1.1', 'alert 10', 'a HelloRequest', () =>
    record(RECORD.handshake, message(0, Buffer.alloc(0))),
  ),
  sent('RFC 8446 4.1.3', 'alert 10', 'a ServerHello', () =>
    record(RECORD.handshake, message(2, Buffer.alloc(50))),
  ),
  sent('Beurdouche et al. 2015, "SMACK"', 'alert 10', 'Finished first', () =>
    record(RECORD.handshake, message(20, Buffer.alloc(32))),
  ),
  sent('CVE-2014-0160, "Heartbleed"', 'alert 10', 'a heartbeat first', () =>
    record(RECORD.heartbeat, hex('014000')),
  ),
  sent('CVE-2014-0160, "Heartbleed"', 'hello', 'a heartbeat behind the hello', () =>
    Buffer.concat([clientHello(), record(RECORD.heartbeat, hex('014000'))]),
  ),
  sent('CVE-2014-0224', 'alert 10', 'ChangeCipherSpec first', () => CHANGE),
  sent('CVE-2014-0224', 'hello, alert 70', 'ChangeCipherSpec behind the hello, TLS 1.2', () =>
    Buffer.concat([hello12(), CHANGE]),
  ),
  sent('RFC 8446 5', 'hello', '1,000 ChangeCipherSpec behind the hello', () =>
    Buffer.concat([clientHello(), many(1000, CHANGE)]),
  ),
  sent('CVE-2016-8610', 'alert 10', '10,000 warnings', () => many(10_000, WARNING)),
  sent('CVE-2016-8610', 'hello', '10,000 warnings behind the hello', () =>
    Buffer.concat([clientHello(), many(10_000, WARNING)]),
  ),
  sent('RFC 8446 6.2', 'alert 10', 'a fatal alert', () => record(RECORD.alert, hex('0228'))),
  sent('RFC 8446 4.1.2', 'hello', 'two hellos', () => Buffer.concat([clientHello(), clientHello()])),
  sent('RFC 5746 3.6; CVE-2009-3555', 'hello, alert 70', 'two hellos, TLS 1.2', () =>
    Buffer.concat([hello12(), hello12()]),
  ),
  sent('RFC 8446 5.2', 'hello', 'records behind the hello that no key has made', () =>
    Buffer.concat([clientHello(), record(RECORD.data, randomBytes(1000))]),
  ),
];
