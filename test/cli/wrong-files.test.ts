import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { createAuthority, type IssuedCertificate, type TestAuthority } from '#testkit/certificates.ts';
import { invoke } from './invoke.ts';

let folder: string;
let authority: TestAuthority;
let server: IssuedCertificate;
let other: IssuedCertificate;

beforeAll(async () => {
  [folder, authority] = await Promise.all([
    mkdtemp(join(tmpdir(), 'spangate-wrong-files-')),
    createAuthority(),
  ]);
  [server, other] = await Promise.all([authority.issue('server'), authority.issue('other')]);
  await Promise.all([
    writeFile(join(folder, 'not-json'), 'not JSON'),
    writeFile(join(folder, 'no-keys'), '{"keys":[]}'),
    writeFile(join(folder, 'no-yaml'), 'clients: ['),
    writeFile(
      join(folder, 'rsa.key'),
      generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ type: 'pkcs8', format: 'pem' }),
    ),
  ]);
});

afterAll(async () => {
  await authority[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

const pathsOf = ({ certPath, keyPath }: IssuedCertificate) => ({ cert: certPath, key: keyPath });
const jwtOf = (jwks: string) => ({ jwt: { issuer: 'i', audience: 'a', tenant_claim: 't', jwks } });

/** Each names something that is missing or broken. */
const WRONG: readonly (readonly [what: string, () => object, said: RegExp])[] = [
  ['a missing jwt.jwks', () => jwtOf('nowhere'), /^gateway: jwt\.jwks: cannot use \S+nowhere \(ENOENT\)\n$/],
  ['a jwt.jwks that is no JSON', () => jwtOf('not-json'), /not a JSON Web Key Set/],
  ['a jwt.jwks without a key', () => jwtOf('no-keys'), /no key that verifies tokens/],
  ['a jwt.jwks that is a directory', () => jwtOf('.'), /jwt\.jwks: cannot use .*not a file/],
  ['a missing clients_file', () => ({ clients_file: 'nowhere' }), /clients_file: .*nowhere/],
  ['a clients_file that is no YAML', () => ({ clients_file: 'no-yaml' }), /clients_file: /],
  ['a missing certificate', () => ({ gateway: { tls: { ...pathsOf(server), cert: 'nowhere' } } }), /nowhere/],
  [
    'a key of another certificate',
    () => ({ gateway: { admin_tls: { ...pathsOf(server), key: other.keyPath } } }),
    /gateway\.admin_tls: .*does not belong/,
  ],
  [
    'a client_ca that is not PEM',
    () => ({ gateway: { tls: { ...pathsOf(server), client_ca: 'not-json' } } }),
    /gateway\.tls.*not PEM/,
  ],
  [
    'an authority of a replica that is missing',
    () => ({ replicas: [{ name: 'a', url: 'https://127.0.0.1:9', tls: { ca: 'nowhere' } }] }),
    /replicas: a: .*nowhere/,
  ],
  [
    'a reference to a file that is missing',
    () => ({ replicas: [{ name: 'a', url: 'http://127.0.0.1:9', api_key: `\${file:nowhere}` }] }),
    /file:nowhere/,
  ],
];

async function configOf(settings: { readonly gateway?: object }): Promise<string> {
  const path = join(folder, 'gateway.yaml');
  const gateway = { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0', ...settings.gateway };
  const base = { replicas: [{ name: 'a', url: 'http://127.0.0.1:9' }], export: { to: 'file' } };
  await writeFile(path, JSON.stringify({ ...base, ...settings, gateway }));
  return path;
}

describe('what a configuration names and what cannot be used ends with 2 and says why:', () => {
  it.each(WRONG)('%s', async (_, toSettings, said) => {
    const path = await configOf(toSettings());
    for (const command of [['serve'], ['check'], ['check', '--connect']]) {
      const { exitCode, stdout, stderr } = await invoke([...command, '-config', path]);
      expect({ command, exitCode, stdout }).toEqual({ command, exitCode: 2, stdout: '' });
      expect(stderr).toMatch(said);
    }
  });

  it.each([
    ['OTEL_EXPORTER_OTLP_ENDPOINT', 'no-url', /OTEL_EXPORTER_OTLP_ENDPOINT is not an http or https URL/],
    ['OTEL_EXPORTER_OTLP_CERTIFICATE', '/nowhere', /OTEL_EXPORTER_OTLP_CERTIFICATE names cannot be read/],
    ['OTEL_CONFIG_FILE', '/nowhere', /OTEL_CONFIG_FILE is set/],
    ['OTEL_EXPORTER_OTLP_HEADERS', 'na%20me=1', /OTEL_EXPORTER_OTLP_HEADERS: the header "na me"/],
  ])('the variable %s', async (name, value, said) => {
    const path = await configOf({ export: { to: 'otlp' } } as object);
    vi.stubEnv(name, value);
    try {
      for (const command of [['serve'], ['check'], ['check', '--connect']]) {
        const { exitCode, stderr } = await invoke([...command, '-config', path], { [name]: value });
        expect({ command, exitCode }).toEqual({ command, exitCode: 2 });
        expect(stderr).toMatch(said);
      }
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

describe('what a command line names and what cannot be used ends with 2 and says why:', () => {
  const TOKEN = { SVC_ADMIN_TOKEN: 'an-admin-token-of-a-test' };

  it.each([
    ['--ca is missing', () => ['--ca', '/nowhere'], /cannot read \/nowhere \(ENOENT\)/],
    ['--ca is not PEM', () => ['--ca', join(folder, 'not-json')], /--ca .*: this is not PEM/],
    ['--cert is missing', () => ['--cert', '/nowhere', '--key', server.keyPath], /cannot read \/nowhere/],
    ['--key is missing', () => ['--cert', server.certPath, '--key', '/nowhere'], /cannot read \/nowhere/],
    [
      '--key is of another certificate',
      () => ['--cert', server.certPath, '--key', other.keyPath],
      /--cert .*: the key does not belong to the certificate/,
    ],
    [
      '--key is of another algorithm',
      () => ['--cert', server.certPath, '--key', join(folder, 'rsa.key')],
      /--cert .*: the key does not belong to the certificate/,
    ],
  ])('%s', async (_, options, said) => {
    for (const command of [['replicas'], ['drain', 'a'], ['rollout', 'a', '--exec', 'true']]) {
      const state = command[0] === 'rollout' ? ['--state', join(folder, 'rollout.json')] : [];
      const args = [...command, ...state, '--admin', 'https://127.0.0.1:9', ...options()];
      const { exitCode, stderr } = await invoke(args, TOKEN);
      expect({ args, exitCode }).toEqual({ args, exitCode: 2 });
      expect(stderr).toMatch(said);
    }
  });

  it('the certificate in the configuration that finds the gateway is not PEM', async () => {
    const path = await configOf({
      gateway: { admin_tls: { ...pathsOf(server), cert: join(folder, 'not-json') } },
    });
    const { exitCode, stderr } = await invoke(['replicas', '-config', path], TOKEN);
    expect([exitCode, stderr]).toEqual([2, expect.stringContaining('this is not PEM')]);
  });
});
