import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseDocument } from 'yaml';
import { COMMANDS, isCommandName, normalizeArgs, parseArguments } from '#cli/arguments';
import { parseConfig } from '#config';
import { readAllSnippets, type Snippet } from '#testkit/docs-snippets.ts';
import { readCommands, type ShellCommand } from '#testkit/shell-commands.ts';
import { configSchema } from '../../src/config/schema.ts';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
const { scripts } = JSON.parse(read('package.json')) as { scripts: Readonly<Record<string, string>> };

const PAGES = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '*.md'], {
  cwd: ROOT,
  encoding: 'utf8',
})
  .split('\n')
  .filter((path) => path !== '' && !path.startsWith('test/') && existsSync(join(ROOT, path)));

/**
 * The snippets that this file cannot check by itself, as `page # heading [language]`: the test that uses them, or
 * why none can.
 */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'docs/backends.md # Tempo [yaml]': 'test/e2e/backends.test.ts',
  'docs/backends.md # Langfuse [yaml]': 'test/e2e/backends.test.ts',
  'docs/backends.md # Phoenix [yaml]': 'test/e2e/backends.test.ts',
  'docs/backends.md # SigNoz [yaml]': 'test/e2e/backends.test.ts',
  'docs/backends.md # Honeycomb [yaml]': 'test/e2e/backends.test.ts',
  'docs/evidence/cluster.md # On a real control plane [text]': 'what the controllers of others have logged',
  'docs/guide.md # OpenAI SDK for JavaScript [js]': 'lab/test/docs/connecting.test.ts',
  'docs/guide.md # OpenAI SDK for Python [python]': 'lab/test/e2e/docs/connecting.test.ts',
  'docs/guide.md # LangChain [js]':
    'run by hand with @langchain/openai 1.5.8, which has 75 MB with its dependencies',
  'docs/kubernetes.md # A pod that stops [yaml]': 'part of a pod of Kubernetes',
  'docs/kubernetes.md # Readiness gate [yaml]':
    'partly a pod of Kubernetes; the rest is in deploy/helm/examples/pods.yaml',
  'docs/internals/ledger-form.md # The canonical form [python]': 'test/records/verify/reference.test.ts',
  'docs/metrics.md # How to get them [yaml]': 'configuration of Prometheus',
  'docs/comparison.md # From LiteLLM [yaml]': 'lab/test/e2e/docs/migrating.test.ts',
  'docs/comparison.md # From nginx [nginx]': 'lab/test/e2e/docs/migrating.test.ts',
  'docs/comparison.md # From production-stack [yaml]': 'values of a chart that is not here',
  "docs/configuration.md # OpenTelemetry's variables [yaml]": 'values of the chart',
  'docs/internals/prefix-hashes.md # The definition in Python [python]':
    'test/proxy/record/reference.test.ts',
  'docs/internals/prefix-hashes.md # A test vector [text]': 'test/proxy/record/reference.test.ts',
  'docs/security.md # New certificates [yaml]': 'part of a pod of Kubernetes',
};

/** Programs that are not of this project: only the syntax of their command lines is checked here. */
const OTHER_PROGRAMS: ReadonlySet<string> = new Set([
  ...[
    'docker',
    'mlflow',
    'phoenix',
    'pip',
    'xdg-open',
    'kubectl',
    'helm',
    'systemctl',
    'sudo',
    'openssl',
    'python3',
    'tee',
    'install',
    'otelcol-contrib',
    'vllm',
  ],
  ...['vllm-router', 'zstdcat', 'cat', 'curl', 'kill', 'echo', 'printf', 'export', 'base64', 'jq'],
]);
const SHELL_WORDS: ReadonlySet<string> = new Set([
  'while',
  'until',
  'do',
  'done',
  'exit',
  'sleep',
  'read',
  'source',
  'set',
  '[',
]);

const isGatewayConfig = (keys: readonly string[]) =>
  keys.every((key) => key.startsWith('x-') || Object.hasOwn(configSchema.in.shape, key));

/** Checks a snippet of YAML that is, or is a part of, a configuration of the gateway. Returns whether it is one. */
function checkConfig(code: string): boolean {
  const document = parseDocument(code, { merge: true });
  expect(document.errors).toEqual([]);
  const keys = Object.keys(document.toJS() as object);
  if (!isGatewayConfig(keys)) return false;
  const replicas = keys.includes('replicas')
    ? ''
    : '\nreplicas: [{ name: a, url: "http://10.0.0.11:8000" }]\n';
  const secrets = code.replaceAll(/\$\{file:[^}]+\}/g, 'secret');
  const env = { VLLM_KEY: 'key', REDIS_PASSWORD: 'password' };
  parseConfig(`${secrets}${replicas}`, { path: 'gateway.yaml', env });
  return true;
}

/** Throws if a command of this project does not exist or does not take these options. */
function checkCommand([program = '', ...args]: ShellCommand): void {
  if (program === 'gateway') checkGateway(args);
  else if (program === 'npm' && args[0] === 'run') expect(scripts).toHaveProperty([args[1] ?? '']);
  else if (program === 'npm') expect(['ci', 'start', 'test', 'pack', 'install']).toContain(args[0]);
  else if (program === 'npx') {
    expect(args.filter((arg) => arg.endsWith('.ts') && !existsSync(join(ROOT, arg)))).toEqual([]);
  } else if (program.startsWith('deploy/')) expect(existsSync(join(ROOT, program)), program).toBe(true);
  else expect([...OTHER_PROGRAMS, ...SHELL_WORDS]).toContain(program);
}

function checkGateway(args: readonly string[]): void {
  const [first = ''] = args;
  const name = first.startsWith('-') || first === '' ? 'serve' : first;
  if (!isCommandName(name)) throw new Error(`gateway ${name}: there is no such command`);
  const rest = normalizeArgs(name === first ? args.slice(1) : args).filter((arg) => !/^[.…]+$/.test(arg));
  // Every command takes the first, `gateway` alone the second.
  const common = { help: { type: 'boolean', short: 'h' }, version: { type: 'boolean' } } as const;
  parseArguments(rest, { ...COMMANDS[name].options, ...common });
}

/** Checks a snippet as far as this file can. Returns whether it could. */
function check({ language, code }: Snippet): boolean {
  switch (language) {
    case 'yaml':
      return checkConfig(code);
    case 'json': {
      const isLines = code
        .trim()
        .split('\n')
        .every((line) => line.startsWith('{') && line.endsWith('}'));
      for (const text of isLines ? code.trim().split('\n') : [code]) JSON.parse(text);
      return true;
    }
    case 'sh':
      execFileSync('bash', ['-n'], { input: code, stdio: ['pipe', 'ignore', 'inherit'] });
      for (const command of readCommands(code)) checkCommand(command);
      return true;
    // What a program prints. A line that begins with `$ ` is a command.
    case '':
    case 'console':
      for (const [, line = ''] of code.matchAll(/^\$ (.*)$/gm))
        for (const command of readCommands(line)) checkCommand(command);
      return true;
    // A drawing: its readers see at once that it is broken.
    case 'mermaid':
      return true;
    default:
      return false;
  }
}

describe('every snippet of the documents is checked here or in the test that is named:', () => {
  const used = new Set<string>();
  test.each(PAGES)('%s', async (page) => {
    for (const snippet of await readAllSnippets(join(ROOT, page))) {
      const name = `${page} # ${snippet.heading} [${snippet.language}]`;
      const isChecked = check(snippet);
      if (!isChecked) expect(Object.keys(ELSEWHERE)).toContain(name);
      if (Object.hasOwn(ELSEWHERE, name)) used.add(name);
    }
  });

  test('none is named that is not there', () => {
    expect(Object.keys(ELSEWHERE).filter((name) => !used.has(name))).toEqual([]);
  });

  test('the named tests are there, and read the page', () => {
    const tests = Object.entries(ELSEWHERE).filter(([, where]) => where.endsWith('.ts'));
    const blind = tests.filter(([name, file]) => !read(file).includes(basename(name.split(' # ')[0] ?? '')));
    expect(blind).toEqual([]);
  });
});
