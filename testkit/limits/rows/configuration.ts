import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { readClients } from '#access/clients';
import { parseClientsFile, parseConfig } from '#config';
import { readSecretFile } from '#config/secrets';
import { parsePassedPath } from '../../../src/config/schema/passed-path.ts';
import { startGateway } from '../../start-gateway.ts';
import { inFile, type Limit, testedBy } from '../limit.ts';

const REPLICAS = 'replicas: [{ name: a, url: "http://a:1" }]\n';

/** Reads a configuration: `accepted`, or the first line of what is wrong. */
function parse(text: string): string {
  return outcomeOf(() => parseConfig(text, { path: 'gateway.yaml', env: {} }));
}

function outcomeOf(read: () => unknown): string {
  try {
    read();
    return 'accepted';
  } catch (error) {
    return toReason(error);
  }
}

const toReason = (error: unknown) =>
  error instanceof Error ? (error.message.split('\n')[0] ?? '') : String(error);

/** What comes of reading a file of this size. */
async function readFileOfSize(
  text: string,
  read: (path: string) => Promise<unknown>,
  name = 'file',
): Promise<string> {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-limits-'));
  const path = join(folder.path, name);
  await writeFile(path, text);
  return await read(path).then(
    () => 'accepted',
    (error: unknown) => toReason(error).replace(path, 'file'),
  );
}

/** The configuration, and the files that it names. */
export const CONFIGURATION: readonly Limit[] = [
  {
    what: 'a duration in the configuration',
    source: inFile('src/config/schema/codecs.ts', 'MAX_DURATION_MS'),
    past: 'the file is refused',
    proof: testedBy(
      'test/limits/configuration-bounds.test.ts',
      'is accepted at its bounds, and refused past them',
    ),
  },
  {
    what: 'a size in the configuration',
    source: inFile('src/config/schema/codecs.ts', 'MAX_SIZE_BYTES'),
    past: 'the file is refused',
    proof: testedBy(
      'test/limits/configuration-bounds.test.ts',
      'is accepted at its bounds, and refused past them',
    ),
  },
  {
    what: 'the depth of the configuration',
    source: inFile('src/config/yaml/yaml-syntax.ts', 'MAX_DEPTH'),
    past: 'the file is refused',
    proof: {
      send: async (size) => {
        const brackets = parse(`${REPLICAS}x-deep: ${'['.repeat(size)}${']'.repeat(size)}\n`);
        const dashes = parse(`${REPLICAS}x-deep:\n  ${'- '.repeat(size)}1\n`);
        return `${brackets}, with dashes ${dashes}`;
      },
      at: 'accepted, with dashes accepted',
      past: 'gateway.yaml:1: the file is nested more than 100 levels deep, with dashes gateway.yaml:1: the file is nested more than 100 levels deep',
    },
  },
  {
    what: 'values that YAML aliases (`*name`) add to the configuration',
    source: inFile('src/config/yaml/yaml-source.ts', 'MAX_ALIASED_VALUES'),
    past: 'the file is refused',
    proof: {
      send: async (size) => {
        // An alias of a list of 999 values and itself.
        const list = `x-a: &a [${Array(999).fill('1').join()}]\nx-one: &one 1\n`;
        const aliases = [...Array(Math.floor(size / 1000)).fill('*a'), ...Array(size % 1000).fill('*one')];
        return parse(`${REPLICAS}${list}x-all: [${aliases.join()}]\n`);
      },
      at: 'accepted',
      past: 'gateway.yaml:4: x-all: aliases bring more than 100000 values, expected fewer',
    },
  },
  {
    what: 'line ends, commas, colons, dashes, quotes, brackets, `&`, `*` and `!` in a YAML file',
    source: inFile('src/config/yaml/yaml-syntax.ts', 'MAX_PARTS'),
    unit: 'number',
    past: 'the file is refused',
    proof: {
      send: async (size) => {
        const partCount = (`${REPLICAS}x-all: []\n`.match(/[\n,[\]{}"'&*!]|[-?:](?=\s)/g) ?? []).length;
        return parse(`${REPLICAS}x-all: [${'1,'.repeat(size - partCount)}]\n`);
      },
      at: 'accepted',
      past: 'gateway.yaml:1: the file has more than 150000 lines, keys and items',
    },
  },
  {
    what: 'a path of `pass`, with its method',
    source: inFile('src/config/schema/passed-path.ts', 'MAX_PASSED_CHARS'),
    past: 'the file is refused',
    proof: {
      send: async (size) =>
        parsePassedPath(`GET /${'p'.repeat(size - 'GET /'.length)}`) === null ? 'refused' : 'accepted',
      at: 'accepted',
      past: 'refused',
    },
  },
  {
    what: '`clients_file` in YAML; for more clients use JSON lines',
    source: inFile('src/config/clients-file.ts', 'MAX_YAML_CHARS'),
    unit: 'bytes',
    past: 'the file is refused; the clients in force stay',
    proof: {
      send: async (size) => {
        const client = `- { name: a, key_sha256: "${'a'.repeat(64)}" }\n# `;
        return await parseClientsFile(client + 'x'.repeat(size - client.length), 'clients.yaml', []).then(
          () => 'accepted',
          toReason,
        );
      },
      at: 'accepted',
      past: 'clients.yaml:1: more than 1 MiB of YAML: write JSON lines instead',
    },
  },
  {
    what: '`clients_file`',
    source: inFile('src/access/clients/read-clients.ts', 'MAX_FILE_BYTES'),
    past: 'the start or reload is refused; the clients in force stay',
    proof: {
      send: (size) => {
        const client = `{"name":"a","key_sha256":"${'a'.repeat(64)}"}`;
        return readFileOfSize(client.padEnd(size), (path) =>
          readClients({ clients: null, clientsFile: path }),
        );
      },
      at: 'accepted',
      past: 'clients_file: file has more than 67108864 bytes',
    },
  },
  {
    what: 'a file with a secret (`SVC_…_FILE`, or one that a value names)',
    source: inFile('src/config/secrets/read-secret.ts', 'MAX_FILE_BYTES'),
    past: 'the start or reload is refused',
    proof: {
      send: (size) => readFileOfSize('s'.repeat(size), (path) => readSecretFile(path, 'file')),
      at: 'accepted',
      past: 'file is larger than 4096 bytes',
    },
  },
  {
    what: 'tokens in one such file',
    source: inFile('src/config/secrets/admin-tokens.ts', 'MAX_TOKENS_PER_FILE'),
    past: 'the start or reload is refused',
    proof: testedBy('test/config/secrets/secrets.test.ts', 'holds too many tokens'),
  },
  {
    what: '`salt` in state_dir',
    source: inFile('src/gateway/composition/salt.ts', 'MAX_FILE_BYTES'),
    past: 'the start is refused',
    proof: {
      send: (size) =>
        readFileOfSize(
          `${'0'.repeat(64)}${'\n'.repeat(size - 64)}`,
          async (path) => {
            await using _gateway = await startGateway({
              replicas: [{ name: 'a', url: 'http://127.0.0.1:9' }],
              stateDir: dirname(path),
              hashSalt: '',
            });
          },
          'salt',
        ),
      at: 'accepted',
      past: 'hash salt: file is far too large to be ours',
    },
  },
  {
    what: 'a file of drains or of the fleet in state_dir',
    source: inFile('src/state-dir/state-file.ts', 'MAX_BYTES'),
    past: 'it is moved aside as damaged; nothing is drained by it',
    proof: {
      send: async (size) => {
        await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-limits-'));
        await writeFile(join(folder.path, 'drains.json'), '{"version":1,"replicas":{}}'.padEnd(size));
        await using gateway = await startGateway({
          replicas: [{ name: 'a', url: 'http://127.0.0.1:9' }],
          stateDir: folder.path,
        });
        const warned = gateway.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level >= 40);
        return warned.map(({ msg }) => msg).join() || 'read';
      },
      at: 'read',
      past: 'a state file is damaged: it was renamed, and some of its content is lost',
    },
  },
];
