import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import OpenAI, { APIConnectionError } from 'openai';
import { Agent, fetch } from 'undici';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  createAuthority,
  type IssuedCertificate,
  type TestAuthority,
  type TestIssuer,
} from '#testkit/certificates.ts';
import { type StartedSimulation, startSimulatedReplica } from '#testkit/simulated-replica.ts';
import { type StartedGateway, startGateway } from '#testkit/start-gateway.ts';

let folder: string;
let authority: TestAuthority;
let foreign: TestAuthority;
let intermediate: TestIssuer;
let server: IssuedCertificate;
let client: IssuedCertificate;
let replica: StartedSimulation;
/** Its certificate file has the intermediate authority's certificate, too. */
let gateway: StartedGateway;
/** Wants certificates of clients. */
let strict: StartedGateway;

beforeAll(async () => {
  [folder, authority, foreign, replica] = await Promise.all([
    mkdtemp(join(tmpdir(), 'spangate-tls-clients-')),
    createAuthority(),
    createAuthority(),
    startSimulatedReplica(),
  ]);
  intermediate = await authority.issueAuthority('intermediate');
  [server, client] = await Promise.all([intermediate.issue('server'), authority.issue('client')]);
  const tls = { cert: join(folder, 'chain.pem'), key: server.keyPath };
  await writeFile(tls.cert, server.cert + intermediate.ca.cert);
  const start = (own: object) =>
    startGateway({ replicas: [replica], config: { gateway: { tls: { ...tls, ...own } } } });
  [gateway, strict] = await Promise.all([
    start({}),
    start({ client_ca: authority.ca.certPath, record_subject: true }),
  ]);
});

afterAll(async () => {
  const all = [gateway, strict, replica, authority, foreign];
  await Promise.all(all.map((each) => each[Symbol.asyncDispose]()));
  await rm(folder, { recursive: true });
});

/** What a command prints, to both outputs, and its exit code. */
async function runCommand(file: string, args: readonly string[], input = '') {
  const child = spawn(file, args);
  child.stdin.on('error', () => undefined).end(input);
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { output: out + err, exitCode: child.exitCode };
}

const sClient = ({ url }: StartedGateway, ...options: readonly string[]) =>
  runCommand('openssl', [
    ...['s_client', '-connect', new URL(url).host, '-CAfile', authority.ca.certPath],
    ...['-verify_return_error', ...options],
  ]);

describe('openssl s_client', () => {
  test('gets the whole chain, and can verify it with the root alone', async () => {
    const { output, exitCode } = await sClient(gateway, '-showcerts');
    expect(exitCode).toBe(0);
    expect(output).toContain('Verify return code: 0 (ok)');
    const subjects = [...output.matchAll(/^ *\d s:CN ?= ?(.+)$/gm)].map(([, subject]) => subject);
    expect(subjects).toEqual(['spangate server', 'spangate intermediate']);
  });

  test.each([
    'ECDHE-ECDSA-AES128-GCM-SHA256',
    'ECDHE-ECDSA-AES256-GCM-SHA384',
    'ECDHE-ECDSA-CHACHA20-POLY1305',
  ])('can use %s in TLS 1.2', async (cipher) => {
    const { output } = await sClient(gateway, '-tls1_2', '-cipher', cipher);
    expect(output).toContain(`New, TLSv1.2, Cipher is ${cipher}`);
  });

  test('can use no suite of TLS 1.2 without forward secrecy and authenticated encryption', async () => {
    const strong = 'ECDHE+AESGCM:ECDHE+CHACHA20';
    const list = async (names: string) => {
      const { output } = await runCommand('openssl', ['ciphers', '-s', '-tls1_2', names]);
      return output.trim().split(':');
    };
    const kept = new Set(await list(strong));
    const weak = (await list('ALL:@SECLEVEL=0')).filter((name) => !kept.has(name));
    expect(weak.length).toBeGreaterThan(10);
    const { output, exitCode } = await sClient(
      gateway,
      ...['-tls1_2', '-cipher', `${weak.join(':')}:@SECLEVEL=0`],
    );
    expect(output).toContain('handshake failure');
    expect(exitCode).toBe(1);
  });

  test('cannot renegotiate', async () => {
    const { output } = await runCommand(
      'openssl',
      ['s_client', '-connect', new URL(gateway.url).host, '-tls1_2'],
      'R\n',
    );
    expect(output).toContain('RENEGOTIATING');
    expect(output).toContain('no renegotiation');
  });
});

describe('curl', () => {
  const curl = ({ url }: StartedGateway, ...options: readonly string[]) =>
    runCommand('curl', ['-sS', ...options, `${url}/healthz`]);

  test('is served if it knows the authority', async () => {
    const { output, exitCode } = await curl(
      gateway,
      '--cacert',
      authority.ca.certPath,
      '-w',
      ' %{http_version}',
    );
    expect([output, exitCode]).toEqual(['ok 1.1', 0]);
  });

  test('refuses the gateway if it knows another authority', async () => {
    const { output, exitCode } = await curl(gateway, '--cacert', foreign.ca.certPath);
    expect(exitCode).toBe(60); // "Peer certificate cannot be authenticated with known CA certificates"
    expect(output).toContain('SSL certificate problem');
  });

  test('is served with a client certificate, and refused without one, where one is wanted', async () => {
    const known = ['--cacert', authority.ca.certPath];
    const own = ['--cert', client.certPath, '--key', client.keyPath];
    expect(await curl(strict, ...known, ...own)).toEqual({ output: 'ok', exitCode: 0 });
    const refused = await curl(strict, ...known);
    expect(refused.exitCode).not.toBe(0);
    expect(refused.output).toContain('alert');
  });
});

describe("OpenAI's client", () => {
  const clientOf = ({ url }: StartedGateway, dispatcher: Agent) =>
    new OpenAI({
      baseURL: `${url}/v1`,
      apiKey: 'k',
      maxRetries: 0,
      fetch: ((input: string, init: object) => fetch(input, { ...init, dispatcher })) as never,
    });
  const request = { model: 'm', messages: [{ role: 'user' as const, content: 'Hi' }] };

  test('gets answers and streams over TLS', async () => {
    await using agent = disposable(new Agent({ connect: { ca: authority.ca.cert } }));
    const openai = clientOf(gateway, agent.value);
    const plain = await openai.chat.completions.create(request);
    const chunks = await Array.fromAsync(await openai.chat.completions.create({ ...request, stream: true }));
    const streamed = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('');
    expect(plain.choices[0]?.message.content).toBeTruthy();
    expect(streamed).toBeTruthy();
    expect(chunks.at(-1)?.choices[0]?.finish_reason).toBe('stop');
    const records = await gateway.waitForRecords(2);
    expect(records.map(({ status, stream }) => [status, stream])).toEqual([
      [200, false],
      [200, true],
    ]);
  });

  test('is told apart by its certificate in the record', async () => {
    const connect = { ca: authority.ca.cert, cert: client.cert, key: client.key };
    await using agent = disposable(new Agent({ connect }));
    await clientOf(strict, agent.value).chat.completions.create(request);
    expect(await strict.nextRecord()).toMatchObject({ client_subject: 'CN=spangate client' });
  });

  test('throws a connection error if it does not know the authority', async () => {
    await using agent = disposable(new Agent({ connect: { ca: foreign.ca.cert } }));
    const asked = clientOf(gateway, agent.value).chat.completions.create(request);
    await expect(asked).rejects.toBeInstanceOf(APIConnectionError);
  });
});

function disposable(agent: Agent) {
  return { value: agent, [Symbol.asyncDispose]: () => agent.destroy() };
}
