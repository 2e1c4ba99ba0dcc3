import { generateKeyPairSync, randomBytes } from 'node:crypto';

/** What a ClientHello says (RFC 8446 4.1.2). By default that of a sound client, with TLS 1.3 and 1.2. */
export interface Hello {
  /** The version of old: 0x0303 is TLS 1.2, and also what TLS 1.3 says. */
  readonly version?: number;
  readonly sessionId?: Buffer;
  /** The suites, as bytes. */
  readonly ciphers?: Buffer;
  readonly compressions?: Buffer;
  /** All extensions, as bytes with their types and lengths. */
  readonly extensions?: Buffer;
}

/** Types of records (RFC 8446 5.1, RFC 6520 6). */
export const RECORD = { cipherSpec: 20, alert: 21, handshake: 22, data: 23, heartbeat: 24 } as const;

/** TLS_AES_128_GCM_SHA256, and the suites of TLS 1.2 with ECDHE, ECDSA and AES-GCM. */
const CIPHERS = Buffer.from('1301c02bc02c', 'hex');
const MAX_RECORD = 2 ** 14;

/** A number in this many bytes. */
export function int(value: number, bytes: 1 | 2 | 3): Buffer {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
}

/** Bytes behind their length, which has this many bytes itself. */
export const sized = (bytes: 1 | 2 | 3, ...pieces: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(pieces);
  return Buffer.concat([int(content.length, bytes), content]);
};

/** One extension. */
export const extension = (type: number, content: Buffer): Buffer =>
  Buffer.concat([int(type, 2), sized(2, content)]);

/** The name of the server (SNI, RFC 6066 3), whatever bytes it has. */
export const serverName = (name: Buffer | string): Buffer =>
  extension(0, sized(2, int(0, 1), sized(2, Buffer.from(name as string, 'latin1'))));

/** Protocols for ALPN (RFC 7301 3.1). */
export const alpn = (...names: readonly (Buffer | string)[]): Buffer =>
  extension(16, sized(2, ...names.map((name) => sized(1, Buffer.from(name as string, 'latin1')))));

/** TLS 1.3 and 1.2 are supported (RFC 8446 4.2.1). */
export const VERSIONS = extension(43, sized(1, Buffer.from('03040303', 'hex')));

/** Groups X25519 and P-256, signatures, uncompressed points, and how a ticket may be used. */
const ABILITIES = Buffer.concat([
  extension(10, sized(2, Buffer.from('001d0017', 'hex'))),
  extension(11, sized(1, Buffer.from('00', 'hex'))),
  extension(13, sized(2, Buffer.from('04030503080408050806', 'hex'))),
  extension(45, sized(1, Buffer.from('01', 'hex'))),
]);

/** What TLS 1.2 needs. */
export const TLS12 = ABILITIES;

/** A share for X25519 (RFC 8446 4.2.8), by default a sound one. */
export function keyShare(
  key: Buffer = generateKeyPairSync('x25519').publicKey.export({ type: 'spki', format: 'der' }).subarray(-32),
  group = 0x1d,
): Buffer {
  return extension(51, sized(2, int(group, 2), sized(2, key)));
}

/** The extensions of a sound client of TLS 1.3, with these before them. */
export const withTls13 = (...first: readonly Buffer[]): Buffer =>
  Buffer.concat([...first, ABILITIES, VERSIONS, keyShare()]);

/** The handshake message (RFC 8446 4). */
export function helloMessage(hello: Hello = {}): Buffer {
  const {
    version = 0x0303,
    sessionId = randomBytes(32),
    ciphers = CIPHERS,
    compressions = Buffer.from([0]),
    extensions = withTls13(),
  } = hello;
  const body = Buffer.concat([
    ...[int(version, 2), randomBytes(32), sized(1, sessionId)],
    ...[sized(2, ciphers), sized(1, compressions), sized(2, extensions)],
  ]);
  return message(1, body);
}

/** A handshake message of any type. */
export const message = (type: number, body: Buffer): Buffer => Buffer.concat([int(type, 1), sized(3, body)]);

/** One record. */
export const record = (type: number, content: Buffer, version = 0x0301): Buffer =>
  Buffer.concat([int(type, 1), int(version, 2), sized(2, content)]);

/** Bytes in records of this size. */
export function records(type: number, content: Buffer, size = MAX_RECORD): Buffer {
  const count = Math.ceil(content.length / size);
  return Buffer.concat(
    Array.from({ length: count }, (_, index) =>
      record(type, content.subarray(index * size, (index + 1) * size)),
    ),
  );
}

/** What a client sends first. */
export const clientHello = (hello: Hello = {}): Buffer => records(RECORD.handshake, helloMessage(hello));
