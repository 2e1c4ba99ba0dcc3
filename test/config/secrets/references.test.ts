// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are references of the file, not JavaScript.
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ConfigError } from '../../../src/config/config-error.ts';
import { loadConfig, printConfig } from '../../../src/config/load.ts';

const SECRET = 'content-of-the-file';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'spangate-references-'));
  await mkdir(join(directory, 'secrets'));
});
afterAll(() => rm(directory, { recursive: true }));

const write = (name: string, content: string | Uint8Array) =>
  writeFile(join(directory, 'secrets', name), content);

const load = async (text: string, env: Readonly<Record<string, string>> = {}) => {
  const path = join(directory, 'gateway.yaml');
  await writeFile(path, text);
  return await loadConfig(path, env);
};

/** The problems of a text, each as `key path: text`. */
const problemsOf = (text: string) =>
  load(text).then(
    () => [],
    (error: unknown) =>
      error instanceof ConfigError
        ? error.problems.map((problem) => `${problem.line}: ${problem.keyPath}: ${problem.text}`)
        : [String(error)],
  );

const REPLICA = 'replicas: [{ name: a, url: "http://a" }]\n';

describe('${file:PATH}', () => {
  test('is the content of the file without its last line break; a relative path begins at the configuration', async () => {
    await write('key', `${SECRET}\r\n`);
    const { config } = await load(`replicas:
  - { name: a, url: "http://a", api_key: "\${file:secrets/key}" }
  - { name: b, url: "http://b", api_key: "x-\${file:${join(directory, 'secrets/key')}}" }
  - name: c
    url: http://c
    api_key: \${file:./secrets/key}
`);
    expect(config.replicas.map(({ apiKey }) => apiKey)).toEqual([SECRET, `x-${SECRET}`, SECRET]);
  });

  test('can be part of any text, number, flag or word, beside variables', async () => {
    await write('count', '100\n');
    await write('password', 'pass%2Fword\n');
    const { config } = await load(
      `${REPLICA}limits: { connections: "\${file:secrets/count}" }
state: { redis: "redis://\${USER}:\${file:secrets/password}@redis" }
log: { requests: "\${FLAG}" }
`,
      { USER: 'gw', FLAG: 'true' },
    );
    expect(config.limits.connections).toBe(100);
    expect(config.state.redis).toBe('redis://gw:pass%2Fword@redis');
  });

  test('is not expanded again, adds no YAML, and is literal after two dollar signs', async () => {
    await write('tricks', '${HOME} ${file:secrets/key}, engine: vllm }');
    const text = 'replicas: [{ name: a, url: "http://a", host: "${file:secrets/tricks} $${file:x}" }]';
    const { replicas } = (await load(text)).config;
    expect(replicas[0]?.host).toBe('${HOME} ${file:secrets/key}, engine: vllm } ${file:x}');
  });

  test('works through anchors, and a file named in a comment need not exist', async () => {
    await write('key', SECRET);
    const text = `x-gpu: &gpu { api_key: "\${file:secrets/key}" } # not \${file:nowhere}
replicas:
  - { <<: *gpu, name: a, url: "http://a" }
`;
    const { config, fromFiles } = await load(text);
    expect(config.replicas[0]?.apiKey).toBe(SECRET);
    expect(printConfig(config, fromFiles)).not.toContain(SECRET);
  });

  test('is read for a thousand replicas, each with a file of its own', async () => {
    const names = Array.from({ length: 1_024 }, (_, index) => `r${index}`);
    await Promise.all(names.map((name) => write(`key-${name}`, `${name}-${SECRET}`)));
    const lines = names.map(
      (name) => `  - { name: ${name}, url: "http://${name}", api_key: "\${file:secrets/key-${name}}" }`,
    );
    const { replicas } = (await load(`replicas:\n${lines.join('\n')}\n`)).config;
    expect(replicas.map(({ apiKey }) => apiKey)).toEqual(names.map((name) => `${name}-${SECRET}`));
  });
});

describe('a file that cannot be used is a problem that names line, key and path, and never its content:', () => {
  const api = (reference: string) =>
    `replicas:\n  - name: a\n    url: http://a\n    api_key: "${reference}"\n`;

  test.each([
    ['it is not there', '${file:secrets/none}', 'the file cannot be read: there is no such file'],
    ['it is a directory', '${file:secrets}', 'the file is not a regular file'],
    ['it is empty', '${file:secrets/empty}', 'the file is empty'],
    ['it is too large', '${file:secrets/large}', 'the file is larger than 4096 bytes'],
    ['it is not text', '${file:secrets/bytes}', 'the file is not text in UTF-8'],
    ['it is endless', '${file:/dev/zero}', 'the file is not a regular file'],
  ])('%s', async (_, reference, problem) => {
    await write('empty', '\n');
    await write('large', SECRET.repeat(300));
    await write('bytes', Buffer.from([0xc3, 0x28]));
    expect(await problemsOf(api(reference))).toEqual([
      `4: replicas[0].api_key: found ${reference}, but ${problem}`,
    ]);
  });

  test('its content does not fit', async () => {
    await write('lines', `${SECRET}\n${SECRET}\n`);
    const [problem] = await problemsOf(api('${file:secrets/lines}'));
    expect(problem).toMatch(/^4: replicas\[0\]\.api_key: found "\$\{file:secrets\/lines\}", expected /);
    await write('listen', '0.0.0.0:8080');
    const text = `${REPLICA}gateway: { admin_listen: "\${file:secrets/listen}" }`;
    expect(await problemsOf(text)).toEqual([
      '2: gateway.admin_listen: the content of the file does not fit here',
    ]);
  });

  test('the reference has no path, or a path with escapes', async () => {
    expect(await problemsOf(api('${file:}'))).toEqual([
      expect.stringContaining('found an invalid reference'),
    ]);
    expect(await problemsOf(api('${file:secrets/\\x6bey}'))).toEqual([
      '4: replicas[0].api_key: found a ${file:…} whose path has escapes, expected it as it is',
    ]);
  });

  test.each([
    'tls: { cert: a.pem, key: "${file:secrets/key}" }',
    'admin_tls: { cert: "${file:secrets/key}", key: k }',
  ])('the key takes a path itself: %s', async (section) => {
    await write('key', SECRET);
    const problems = await problemsOf(`${REPLICA}gateway: { ${section} }`);
    expect(problems).toEqual([
      expect.stringContaining('found a ${file:…}, expected the path itself: the gateway reads the file'),
    ]);
  });
});

test('what comes from a file is masked where the file is printed, also in keys that are no secrets', async () => {
  await write('url', `http://${SECRET}.internal:8000`);
  await write('name', SECRET);
  const { config, fromFiles } = await load(`replicas:
  - { name: a, url: "\${file:secrets/url}" }
  - { name: b, url: "http://b", models: ["\${file:secrets/name}"], host: b }
headers: { tenant: "x-\${file:secrets/name}" }
`);
  const printed = printConfig(config, fromFiles);
  expect(printed).not.toContain(SECRET);
  expect(printed).toContain('url: "***"\n');
  expect(printed).toContain('host: b\n');
});
