import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig } from '#config';
import { MAX_TIMINGS } from '#otel/record';

const ROOT = join(import.meta.dirname, '../..');
const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');

/** The ```yaml blocks of a document that are configurations of the gateway. */
function configsIn(file: string): readonly string[] {
  const blocks = [...read(file).matchAll(/^```yaml\n(.*?)^```/gms)].map(([, text = '']) => text);
  return blocks.filter((text) => /^replicas:/m.test(text));
}

describe('what the documents show works', () => {
  test('the configuration in the guide is valid', () => {
    const configs = configsIn('docs/guide.md').map((text) =>
      parseConfig(text, { path: 'docs/guide.md', env: { VLLM_KEY: 'key' } }),
    );
    expect(configs.map((config) => config.replicas.map(({ name }) => name))).toEqual([['vllm-a', 'vllm-b']]);
  });

  test("the composition's gateway sends requests to its replicas and records to its collector", () => {
    const { services, configs } = parse(read('docker-compose.yml'));
    const config = parseConfig(configs['gateway.yaml'].content, { path: 'docker-compose.yml', env: {} });
    const hosts = [...config.replicas.map(({ url }) => url), config.export.endpoint ?? ''].map(
      (url) => new URL(url ?? '').hostname,
    );
    expect(hosts).toEqual(['replica-a', 'replica-b', 'collector']);
    expect(Object.keys(services)).toEqual(expect.arrayContaining(hosts));
  });

  test('the composition waits longer before it kills than a shutdown may take', () => {
    const { services, configs } = parse(read('docker-compose.yml'));
    const { shutdown } = parseConfig(configs['gateway.yaml'].content, {
      path: 'docker-compose.yml',
      env: {},
    });
    const stopGraceMs = Number.parseInt(services.gateway.stop_grace_period, 10) * 1000;
    expect(stopGraceMs).toBeGreaterThan(shutdown.delayMs + shutdown.graceMs + shutdown.flushMs);
  });

  test('docs/record.md says how many timings are kept', () => {
    expect(read('docs/record.md')).toContain(`At most ${MAX_TIMINGS} of them.`);
  });
});

/** The files of the repository, relative to it. */
const FILES: ReadonlySet<string> = new Set(
  execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], {
    cwd: ROOT,
    encoding: 'utf8',
  })
    .split('\n')
    .filter((path) => path !== ''),
);
const FILE_NAMES: ReadonlySet<string> = new Set([...FILES].map((path) => basename(path)));
const DOCUMENTS = [...FILES].filter((path) => path.endsWith('.md') && !path.startsWith('test/'));

/** Names of files that are not of the repository: the reader's own, those of state_dir, other projects'. */
const ELSEWHERE: ReadonlySet<string> = new Set([
  ...[
    'gateway.yaml',
    'clients.yaml',
    'jwks.json',
    'backend.yaml',
    'body.json',
    'acme.json',
    'acme.csv',
    'acme-2026-11.json',
    'key.pem',
    'seller.pem',
    'statement-key.pem',
    'prefix_hashes.py',
    'restart.sh',
  ],
  ...[
    'drains.json',
    'background.json',
    'fleet.json',
    'owner.json',
    'openapi.json',
    'rollout.json',
    'rollouts.json',
    'chart/index.yaml',
    'spangate/rollout.json',
    'schemas/semconv.schema.json',
    'otel/file.ts',
    'proxy/common_request_processing.py',
    'vllm-new.html',
    'spangate-X.Y.Z.cdx.json',
    'spangate-X.Y.Z.provenance.json',
  ],
]);

const FILE_NAME = /[\w./@-]*[\w-]\.(?:ts|js|yaml|yml|sh|json|py|c|h|css|html|md|cfg|svg|png|jpg)\b/g;

/** Whether a name that a document mentions is that of a file: its path, from the root or from there, or just its name. */
function isThere(name: string, document: string): boolean {
  if (ELSEWHERE.has(name) || ELSEWHERE.has(basename(name))) return true;
  if (!name.includes('/')) return FILE_NAMES.has(name);
  return FILES.has(normalize(name)) || FILES.has(normalize(join(dirname(document), name)));
}

describe.each(DOCUMENTS)('what %s refers to is there:', (document) => {
  const text = read(document);
  const withoutUrls = text.replace(/https?:\/\/[^\s)`]+/g, '');

  test('files', () => {
    const names = new Set(withoutUrls.match(FILE_NAME) ?? []);
    expect([...names].filter((name) => !isThere(name, document))).toEqual([]);
  });

  test('headings', () => {
    const links = [...text.matchAll(/\]\(([\w./-]*)#([\w-]+)\)/g)];
    const missing = links.filter(([, path = '', anchor = '']) => {
      const target = path === '' ? document : normalize(join(dirname(document), path));
      return !anchorsIn(read(target)).has(anchor);
    });
    expect(missing.map(([link]) => link)).toEqual([]);
  });

  test('scripts', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const named = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, name = '']) => name);
    expect(named.filter((name) => !Object.hasOwn(scripts, name))).toEqual([]);
  });
});

/** The anchors of a document's headings, as GitHub makes them. */
function anchorsIn(text: string): ReadonlySet<string> {
  const headings = [...text.matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = '']) => heading);
  return new Set(
    headings.map((each) =>
      each
        .toLowerCase()
        .replace(/[^\w\s-]/g, '')
        .trim()
        .replaceAll(' ', '-'),
    ),
  );
}
