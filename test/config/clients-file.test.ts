// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the file's variables, not JavaScript's.
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { parseClientsFile } from '../../src/config/clients-file.ts';
import { ConfigError } from '../../src/config/config-error.ts';

const digestOf = (key: string) => createHash('sha256').update(key).digest('hex');
const entry = (name: string, more: object = {}) => ({ name, key_sha256: digestOf(name), ...more });
const parse = (text: string, others: Parameters<typeof parseClientsFile>[2] = []) =>
  parseClientsFile(text, 'clients.yaml', others);

/** The lines of the error that a text is refused with. */
async function refusalOf(...given: Parameters<typeof parse>): Promise<string[]> {
  const error = await parse(...given).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(ConfigError);
  return (error as ConfigError).message.split('\n');
}

describe('a file of clients', () => {
  const entries = [
    entry('a', { tenant: 't', models: ['m'], expires: '2027-01-31T00:00:00Z' }),
    entry('__proto__'),
  ];
  const parsed = [
    {
      name: 'a',
      keySha256: [digestOf('a')],
      tenant: 't',
      feature: null,
      models: ['m'],
      expiresAtMs: Date.parse('2027-01-31T00:00:00Z'),
    },
    { name: '__proto__', keySha256: [digestOf('__proto__')], tenant: null },
  ];

  test.each([
    ['JSON lines', entries.map((each) => JSON.stringify(each)).join('\n')],
    [
      'JSON lines of Windows, with gaps',
      `\uFEFF\r\n${entries.map((each) => JSON.stringify(each)).join('\r\n\r\n')}\r\n`,
    ],
    ['a list in YAML', entries.map((each) => `- ${JSON.stringify(each)}`).join('\n')],
    ['a list in JSON', JSON.stringify(entries, null, 1)],
  ])('has the entries of `clients`: %s', async (_, text) => {
    expect(await parse(text)).toMatchObject(parsed);
  });

  test.each(['a ${HOME}', '$${HOME}', '${', '${file:/etc/passwd}'])('takes %s as it is', async (tenant) => {
    const entry = JSON.stringify({ name: 'a', key_sha256: digestOf('a'), tenant });
    expect(await parse(entry)).toMatchObject([{ tenant }]);
    expect(await parse(`- ${entry}`)).toMatchObject([{ tenant }]);
  });

  test('may say that there is no client, but not by being empty', async () => {
    expect(await parse('[]')).toEqual([]);
    for (const text of ['', ' \n']) {
      expect(await refusalOf(text)).toEqual([
        'clients.yaml:1: the file is empty, expected a list of clients; [] has none',
      ]);
    }
  });
});

describe('a wrong file of clients is refused by line and key, and nothing of a key is quoted', () => {
  const a = JSON.stringify(entry('a'));
  test.each<[string, string, string[]]>([
    ['cut short', `${a}\n{"name": "b", "key_sha`, ['clients.yaml:2: not a JSON object in one line']],
    [
      'a name twice',
      `${a}\n\n${a.replace(/[0-9a-f]{64}/, digestOf('b'))}`,
      ['clients.yaml:3: name: line 1 has the same name'],
    ],
    [
      'a key twice',
      `${a}\n${a.replace('"a"', '"b"').replace(digestOf('a'), digestOf('a').toUpperCase())}`,
      ['clients.yaml:2: key_sha256: line 1 has the same key'],
    ],
    ['no client', 'clients: []', ['clients.yaml:1: expected a list of clients, or JSON lines']],
    [
      'an unknown key',
      `${a}\n{"name":"b","key_sha256":"${digestOf('b')}","tennant":"t"}`,
      ['clients.yaml:2: tennant: unknown key; did you mean tenant?'],
    ],
    [
      '__proto__ as a key',
      `{"__proto__":1,"name":"b","key_sha256":"${digestOf('b')}"}`,
      ['clients.yaml:1: __proto__: unknown key'],
    ],
    [
      'a text',
      '{}\n"x"',
      [
        'clients.yaml:1: name: found nothing',
        'clients.yaml:1: key_sha256: found nothing',
        'clients.yaml:2: found "x", expected keys with values',
      ],
    ],
    [
      'in YAML',
      `- name: a\n  key_sha256: ${digestOf('a')}\n- name: b c\n  key_sha256: ${digestOf('b')}\n`,
      ['clients.yaml:3: name: found "b c", expected a unique name'],
    ],
    [
      'the key instead of its digest',
      '{"name":"a","key_sha256":"sk-secret"}',
      ['clients.yaml:1: key_sha256: found ***, expected the SHA-256'],
    ],
    [
      'too much YAML',
      `- ${'x'.repeat(1024 ** 2)}`,
      ['clients.yaml:1: more than 1 MiB of YAML: write JSON lines instead'],
    ],
  ])('%s', async (_, text, expected) => {
    const lines = await refusalOf(text);
    expect(lines).toHaveLength(expected.length);
    for (const [index, line] of expected.entries()) expect(lines[index]).toContain(line);
  });

  test('a name or a key that the configuration has, too', async () => {
    const [other] = await parse(a);
    if (other === undefined) throw new Error('the entry was not parsed');
    expect(await refusalOf(a, [other])).toEqual([
      'clients.yaml:1: name: clients[0] of the configuration has the same name',
      'clients.yaml:1: key_sha256: clients[0] of the configuration has the same key',
    ]);
  });

  test('with so many problems that the rest is not read', async () => {
    expect(await refusalOf('{}\n'.repeat(10_000))).toHaveLength(20);
  });
});
