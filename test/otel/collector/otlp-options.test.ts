import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { createAuthority, type TestAuthority } from '#testkit/certificates.ts';
import { createQuietLog } from '#testkit/otel/quiet-log.ts';
import { type ConfiguredCollector, readOtlpOptions } from '../../../otel/collector/otlp-options.ts';

let directory: string;
let authority: TestAuthority;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spangate-'));
  authority = await createAuthority();
  await writeFile(
    join(directory, 'garbage.pem'),
    '-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n',
  );
});
afterAll(() =>
  Promise.all([rm(directory, { recursive: true, force: true }), authority[Symbol.asyncDispose]()]),
);
afterEach(() => {
  vi.unstubAllEnvs();
});

/** Reads the options with these OTEL_EXPORTER_OTLP_ variables set and no others. */
async function read(variables: Record<string, string>, configured: ConfiguredCollector = {}) {
  for (const [name, value] of Object.entries(variables)) vi.stubEnv(`OTEL_EXPORTER_OTLP_${name}`, value);
  const log = createQuietLog();
  const options = await readOtlpOptions(configured, log);
  return { ...options, headers: await options.headers(), url: options.url.href, lines: log.lines };
}

describe('the address', () => {
  test.each([
    { variables: {}, endpoint: null, url: 'http://localhost:4318/v1/traces' },
    { variables: { ENDPOINT: 'http://c:4318' }, endpoint: null, url: 'http://c:4318/v1/traces' },
    { variables: { ENDPOINT: 'https://c/otlp/' }, endpoint: null, url: 'https://c/otlp/v1/traces' },
    {
      variables: { ENDPOINT: 'http://c:4318', TRACES_ENDPOINT: 'http://t:1/as/is' },
      endpoint: null,
      url: 'http://t:1/as/is',
    },
    { variables: { TRACES_ENDPOINT: 'http://t:1/' }, endpoint: 'http://f:2', url: 'http://f:2/v1/traces' },
    { variables: { ENDPOINT: 'no url' }, endpoint: 'http://f:2/base/', url: 'http://f:2/base/v1/traces' },
    { variables: {}, endpoint: 'https://f/base?key=1', url: 'https://f/base/v1/traces?key=1' },
  ])('with $variables and $endpoint in the file is $url', async ({ variables, endpoint, url }) => {
    expect((await read(variables, { endpoint })).url).toBe(url);
  });

  test.each(['http://c:4318/v1/traces', 'http://c:4318/v1/traces/', 'http://c:4318/v1/metrics'])(
    'in OTEL_EXPORTER_OTLP_ENDPOINT may be that of a call, which is a warning: %s',
    async (address) => {
      const { url, lines } = await read({ ENDPOINT: address });
      expect(url).toBe('http://c:4318/v1/traces');
      expect(lines).toEqual([
        {
          level: 'warn',
          fields: { variable: 'OTEL_EXPORTER_OTLP_ENDPOINT' },
          message: expect.stringMatching(/^the address ends in \/v1\/\w+, which is appended to it/),
        },
      ]);
      const own = await read({ ENDPOINT: address, TRACES_ENDPOINT: 'http://t/v1/traces' });
      expect([own.url, own.lines]).toEqual(['http://t/v1/traces', []]);
    },
  );

  test.each(['not a url', 'collector:4318', 'grpc://collector:4317'])(
    'is an error if it is %s, never a silent default, and the message does not repeat it',
    async (address) => {
      await expect(read({ ENDPOINT: address })).rejects.toThrow(
        /^OTEL_EXPORTER_OTLP_ENDPOINT is not an http/,
      );
      await expect(read({}, { endpoint: address })).rejects.toThrow(/^the export endpoint is not an http/);
    },
  );
});

test('headers, time-out and compression come from the variables, the signal’s own first', async () => {
  const options = await read({
    HEADERS: 'x-a=1,x-b=2',
    TRACES_HEADERS: 'x-b=3,authorization=Bearer%20t',
    TIMEOUT: '7000',
    TRACES_TIMEOUT: '3000',
    COMPRESSION: 'gzip',
  });
  expect(options).toMatchObject({
    headers: { 'x-a': '1', 'x-b': '3', authorization: 'Bearer t', 'Content-Type': 'application/x-protobuf' },
    timeoutMs: 3000,
    compression: 'gzip',
    lines: [],
  });
});

test('a header that HTTP does not allow is an error without its value', async () => {
  await expect(read({ HEADERS: 'x-secret=top%0Asecret' })).rejects.toThrow(/^[^\n]*"x-secret" is not valid$/);
});

test('an invalid time-out or compression is logged, and the default holds', async () => {
  const { timeoutMs, compression, lines } = await read({ TIMEOUT: '-5', COMPRESSION: 'brotli' });
  expect({ timeoutMs, compression }).toEqual({ timeoutMs: 10_000, compression: 'none' });
  expect(lines.map(({ level }) => level)).toEqual(['warn', 'warn']);
});

describe('the protocol', () => {
  test.each<{ variables: Record<string, string>; protocol: string; warnings: number }>([
    { variables: {}, protocol: 'http/protobuf', warnings: 0 },
    { variables: { PROTOCOL: '' }, protocol: 'http/protobuf', warnings: 0 },
    { variables: { PROTOCOL: 'http/json' }, protocol: 'http/json', warnings: 0 },
    { variables: { PROTOCOL: ' http/protobuf ' }, protocol: 'http/protobuf', warnings: 0 },
    { variables: { PROTOCOL: 'grpc' }, protocol: 'http/protobuf', warnings: 1 },
    { variables: { PROTOCOL: 'constructor' }, protocol: 'http/protobuf', warnings: 1 },
    {
      variables: { PROTOCOL: 'http/json', TRACES_PROTOCOL: 'http/protobuf' },
      protocol: 'http/protobuf',
      warnings: 0,
    },
    { variables: { PROTOCOL: 'grpc', TRACES_PROTOCOL: 'http/json' }, protocol: 'http/json', warnings: 0 },
    { variables: { PROTOCOL: 'http/json', TRACES_PROTOCOL: 'grpc' }, protocol: 'http/protobuf', warnings: 1 },
  ])('with $variables is $protocol, with $warnings warnings', async ({ variables, protocol, warnings }) => {
    const options = await read(variables);
    expect(options.protocol).toBe(protocol);
    expect(options.lines).toHaveLength(warnings);
  });

  test('that is configured comes before the variables, and makes no warning of them', async () => {
    const options = await read({ PROTOCOL: 'grpc' }, { protocol: 'http/json' });
    expect(options).toMatchObject({
      protocol: 'http/json',
      headers: { 'Content-Type': 'application/json' },
      lines: [],
    });
  });

  test('that the gateway does not have is a warning that names the variable and what is used', async () => {
    const { lines } = await read({ TRACES_PROTOCOL: 'grpc' });
    expect(lines).toEqual([
      {
        level: 'warn',
        fields: { variable: 'OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', protocol: 'grpc' },
        message: 'the gateway does not have this protocol: traces are sent as http/protobuf',
      },
    ]);
  });
});

describe('certificates', () => {
  test('that can be read are the agent’s', async () => {
    const { agent } = await read({ ENDPOINT: 'https://c', CERTIFICATE: authority.ca.certPath });
    expect(Reflect.get(agent, 'options').ca.toString()).toBe(authority.ca.cert);
  });

  test.each(['CERTIFICATE', 'TRACES_CERTIFICATE', 'CLIENT_CERTIFICATE', 'TRACES_CLIENT_KEY'])(
    'that cannot be read are an error at the start: %s',
    async (variable) => {
      await expect(read({ [variable]: join(directory, 'missing.pem') })).rejects.toThrow(
        `the file that OTEL_EXPORTER_OTLP_${variable} names cannot be read`,
      );
    },
  );

  test('that are invalid are an error at the start', async () => {
    const variables = { ENDPOINT: 'https://c', CERTIFICATE: join(directory, 'garbage.pem') };
    await expect(read(variables)).rejects.toThrow(
      'the certificates or the key for the export cannot be used',
    );
  });
});
