import { once } from 'node:events';
import { connect as connectTcp, createServer } from 'node:net';
import { type ConnectionOptions, connect as connectTls, type TLSSocket } from 'node:tls';
import { expect, onTestFinished, test } from 'vitest';
import { createAuthority, type TestIssuer } from '#testkit/certificates.ts';
import { EventLog } from '#testkit/event-log.ts';
import { listen } from '#testkit/servers/local-server.ts';
import {
  type CertificatePair,
  checkTlsMaterial,
  TlsAcceptor,
  type TlsMaterial,
} from '../../../src/wire/client/tls-acceptor.ts';

const toMaterial = (pairs: readonly CertificatePair[], changes: Partial<TlsMaterial> = {}): TlsMaterial => ({
  pairs: pairs as unknown as TlsMaterial['pairs'],
  clientCa: null,
  minVersion: 'TLSv1.2',
  ticketKeys: Buffer.alloc(48, 1),
  ...changes,
});

/** A listener that greets those whose handshake is complete, and notes how others failed. */
async function start(material: TlsMaterial, handshakeTimeoutMs = 60_000) {
  const failed = new EventLog<string>();
  const secured = new EventLog<TLSSocket>();
  const acceptor = new TlsAcceptor(material, {
    handshakeTimeoutMs,
    onSecure: (socket) => {
      socket.on('error', () => undefined);
      socket.write('hello');
      secured.push(socket);
    },
    onFailed: (code, address) => failed.push(`${code} ${address}`),
  });
  const server = createServer({ allowHalfOpen: true }, (socket) => acceptor.accept(socket));
  const port = await listen(server);
  onTestFinished(() => {
    for (const socket of secured.items) socket.destroy();
    server.close();
  });
  const connect = async (issuer: TestIssuer, options: ConnectionOptions = {}) => {
    const socket = connectTls({ host: '127.0.0.1', port, ca: issuer.ca.cert, ...options });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => undefined);
    const [greeting] = await once(socket, 'data');
    expect(String(greeting)).toBe('hello');
    return socket;
  };
  return { port, failed, secured, connect };
}

test('the certificate is that of the name for which a client asks, and the first one where there is none', async () => {
  await using authority = await createAuthority();
  const first = await authority.issue('first', 'DNS:a.test,IP:127.0.0.1');
  const second = await authority.issue('second', 'DNS:b.test');
  const { connect } = await start(toMaterial([first, second]));
  const nameOf = async (options: ConnectionOptions) =>
    (await connect(authority, options)).getPeerCertificate().subject.CN;
  const checkServerIdentity = () => undefined;
  for (let round = 0; round < 2; round++) {
    expect(await nameOf({ servername: 'b.test' })).toBe('spangate second');
    expect(await nameOf({ servername: 'a.test' })).toBe('spangate first');
    expect(await nameOf({ servername: 'c.test', checkServerIdentity })).toBe('spangate first');
  }
  expect(await nameOf({})).toBe('spangate first');
});

test('a client speaks HTTP/1.1, and a suite with forward secrecy and authenticated encryption', async () => {
  await using authority = await createAuthority();
  const { connect, failed } = await start(toMaterial([await authority.issue('server')]));
  const socket = await connect(authority, { ALPNProtocols: ['h2', 'http/1.1'] });
  expect([socket.alpnProtocol, socket.getProtocol()]).toEqual(['http/1.1', 'TLSv1.3']);
  for (const ciphers of [
    'TLS_AES_128_GCM_SHA256',
    'TLS_AES_256_GCM_SHA384',
    'TLS_CHACHA20_POLY1305_SHA256',
  ]) {
    expect((await connect(authority, { ciphers, minVersion: 'TLSv1.3' })).getCipher().name).toBe(ciphers);
  }
  for (const ciphers of [
    ...['ECDHE-ECDSA-AES128-GCM-SHA256', 'ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-CHACHA20-POLY1305'],
  ]) {
    expect((await connect(authority, { ciphers, maxVersion: 'TLSv1.2' })).getCipher().name).toBe(ciphers);
  }
  const old = connect(authority, { ciphers: 'ECDHE-ECDSA-AES128-SHA', maxVersion: 'TLSv1.2' });
  old.catch(() => undefined);
  expect(await failed.next()).toMatch(/^ERR_SSL_NO_SHARED_CIPHER 127\.0\.0\.1$/);
});

test('a client without a certificate that is asked for, or with that of a stranger, fails with the reason', async () => {
  await using authority = await createAuthority();
  const stranger = await authority.issueAuthority('stranger');
  const material = toMaterial([await authority.issue('server')], { clientCa: authority.ca.cert });
  const { connect, failed, secured } = await start(material);
  const known = await authority.issue('client');
  await connect(authority, { cert: known.cert, key: known.key });
  expect(secured.items).toHaveLength(1);
  connect(authority).catch(() => undefined);
  expect(await failed.next()).toBe('ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE 127.0.0.1');
  const { cert, key } = await stranger.issue('other');
  connect(authority, { cert, key }).catch(() => undefined);
  expect(await failed.next()).toMatch(/^UNABLE_TO_VERIFY_LEAF_SIGNATURE /);
  expect([secured.items.length, failed.items.length]).toEqual([1, 2]);
});

test('a client that closes its side in the handshake has left', async () => {
  await using authority = await createAuthority();
  const { port, failed } = await start(toMaterial([await authority.issue('server')]));
  const leaving = connectTcp({ host: '127.0.0.1', port });
  leaving.end();
  expect(await failed.next()).toMatch(/^ECONNRESET /);
});

test('a client that is silent in the handshake is late', async () => {
  await using authority = await createAuthority();
  const { port, failed } = await start(toMaterial([await authority.issue('server')]), 20);
  const silent = connectTcp({ host: '127.0.0.1', port, allowHalfOpen: true });
  onTestFinished(() => void silent.destroy());
  const ended = once(silent.resume(), 'end');
  expect(await failed.next()).toMatch(/^ERR_TLS_HANDSHAKE_TIMEOUT/);
  await ended;
});

test('a client may close its side after the handshake, and still gets what is sent', async () => {
  await using authority = await createAuthority();
  const { connect, secured } = await start(toMaterial([await authority.issue('server')]));
  const client = await connect(authority, { allowHalfOpen: true } as ConnectionOptions);
  const socket = await secured.next();
  client.end();
  await once(socket.resume(), 'end');
  socket.end('late');
  const [late] = await once(client, 'data');
  expect(String(late)).toBe('late');
});

test('a client that speaks HTTP without TLS is told so, and only such a one', async () => {
  await using authority = await createAuthority();
  const { port, failed } = await start(toMaterial([await authority.issue('server')]));
  for (const [bytes, expected, code] of [
    [
      'GET / HTTP/1.1\r\n\r\n',
      /^HTTP\/1\.1 400 Bad Request\r\nConnection: close\r\n/,
      'ERR_SSL_HTTP_REQUEST',
    ],
    [
      'CONNECT x:1 HTTP/1.1\r\n\r\n',
      /This port speaks TLS: use https:\/\/\n$/,
      'ERR_SSL_HTTPS_PROXY_REQUEST',
    ],
    ['\x01\x02\x03\x04\x05\x06\x07\x08', /^[^H]*$/, 'ERR_SSL_'],
  ] as const) {
    const socket = connectTcp({ host: '127.0.0.1', port });
    let text = '';
    socket.on('data', (read) => {
      text += read.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.write(bytes, 'latin1');
    await once(socket, 'close');
    expect(text).toMatch(expected);
    expect(await failed.next()).toContain(code);
  }
});

test('material that cannot be used is refused before it is', async () => {
  await using authority = await createAuthority();
  const [pair, other] = [await authority.issue('server'), await authority.issue('other')];
  checkTlsMaterial(toMaterial([pair]));
  for (const [material, reason] of [
    [toMaterial([{ ...pair, key: other.key }]), /mismatch/i],
    [toMaterial([{ ...pair, key: 'no key' }]), /./],
    [toMaterial([{ ...pair, cert: 'no certificate' }]), /./],
    [toMaterial([pair, { ...other, key: '' }]), /./],
    [toMaterial([pair], { clientCa: '' }), /./],
  ] as const) {
    expect(() => checkTlsMaterial(material)).toThrow(reason);
    const nothing = () => undefined;
    const options = { handshakeTimeoutMs: 1, onSecure: nothing, onFailed: nothing };
    expect(() => new TlsAcceptor(material, options)).toThrow(reason);
  }
});
