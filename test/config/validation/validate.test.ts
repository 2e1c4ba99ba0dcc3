// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are the file's variables, not JavaScript's.
import { describe, expect, it } from 'vitest';
import { problemsOf, REPLICA } from './problems-of.ts';

const DIGEST = 'the SHA-256 of a key: 64 hexadecimal digits, as `gateway key create NAME` prints it';
const NAME = 'a unique name of letters, digits and . _ ~ -, at most 128';
const URL_TITLE =
  'an http:// or https:// URL without credentials (put a key into api_key), query or fragment';
const DNS_TITLE =
  'an http:// or https:// URL with a DNS name, without credentials, query or fragment, and without a port after an SRV name (_…)';
const MODELS = 'auto, ["*"], or a list of different model names';
const ADDRESS =
  'an address host:port, such as 127.0.0.1:8080 or [::1]:8080, or :8080 for all addresses; port 0 picks a free port';
const UNKNOWN =
  'unknown key, expected one of gateway, headers, endpoints, pass, models_listing, aliases, state_dir, state, replicas, gpu_hour_price, currency, clients, clients_file, jwt, tenant_limits, routing, progressive_usage, retry, health, shadow, rollout, discovery, export, history, statement_key, metrics, trace, prefix_hash, timeouts, limits, shutdown, log, or a key of your own that begins with x-';

it('explains some of the unknown keys of a value, and counts the others', () => {
  const keys = Array.from({ length: 3_000 }, (_, index) => `  k${index}: 1\n`).join('');
  const problems = problemsOf(`${REPLICA}log:\n${keys}`);
  expect(problems).toHaveLength(21);
  expect(problems[0]).toBe('2: log: 2980 more unknown keys');
  expect(problems[1]).toBe('3: log.k0: unknown key, expected one of level, format, requests');
});

it('explains some of the problems that the parser of YAML finds, and counts the others', () => {
  const problems = problemsOf(`a: {${'""'.repeat(3_000)}}`);
  expect(problems).toHaveLength(21);
  expect(problems[0]).toMatch(/^1: /);
  expect(problems.at(-1)).toMatch(/^1: \d{4} more problems$/);
});

it('reads as many keys as a file has lines, also with white space after each', () => {
  expect(problemsOf(`${REPLICA}${'# b:  \n'.repeat(200)}`)).toEqual([]);
  const keys = Array.from({ length: 200 }, (_, index) => `x-${index}:  \n`).join('');
  expect(problemsOf(`${REPLICA}${keys}`)).toEqual([]);
});

describe('a wrong configuration is reported by line and key path, with what was found and what was expected', () => {
  it.each<[string, string, string[]]>([
    [
      'an empty file',
      '',
      [
        '1: replicas: found nothing, expected a list of at least one replica, each with a dash before its name',
      ],
    ],
    [
      'limits of tenants that nothing proves, and a limit that is no number',
      'replicas: [{ name: a, url: "http://a" }]\ntenant_limits:\n  t: { max_inflight: many }',
      [
        '2: tenant_limits: tenants are known by keys or tokens: it needs clients, clients_file or jwt',
        '3: tenant_limits.t.max_inflight: found "many", expected a whole number from 1 to 1000000',
      ],
    ],
    [
      'answers that tell proxies of which none is trusted',
      'replicas: [{ name: a, url: "http://a" }]\nrouting:\n  tell: trusted',
      ['3: routing.tell: it needs gateway.trusted_proxies'],
    ],
    ['a list', '- a', ['1: found a list, expected keys with values']],
    [
      'no replica',
      'replicas: []',
      [
        '1: replicas: found an empty list, expected a list of at least one replica, each with a dash before its name',
      ],
    ],
    [
      'a replica without its required keys',
      'replicas:\n  - host: x\n',
      [
        `2: replicas[0].name: found nothing, expected ${NAME}`,
        '2: replicas[0].url: found nothing, expected a URL here, or a name under the key dns',
      ],
    ],
    [
      'names that are not unique or fit no path',
      'replicas:\n- { name: a, url: "http://a" }\n- { name: a, url: "http://b" }\n- { name: a/b, url: "http://c" }\n- { name: .., url: "http://d" }\n- { name: 7, url: "http://e" }',
      [
        '3: replicas[1].name: found "a", expected a name that replicas[0] does not have',
        `4: replicas[2].name: found "a/b", expected ${NAME}`,
        `5: replicas[3].name: found "..", expected ${NAME}`,
        `6: replicas[4].name: found 7, expected ${NAME}`,
      ],
    ],
    [
      'urls with a secret in their query, fragment or other unexpected places',
      [
        'replicas:',
        '- { name: a, url: "http://a:8000/v1?api_key=hunter2" }',
        '- { name: b, url: "http://user:p/w?hunter2@b#hunter2" }',
        '- { name: c, url: "user:hunter2@c:8000" }',
        '- { name: d, url: "http://a/#hunter2" }',
        '- { name: e, dns: "http://hunter2@e" }',
        'export: { endpoint: "https://collector/?key=hunter2" }',
        'trace: { url_template: "https://u:hunter2@traces/{trace_id}" }',
        'gateway: { name: "see http://hunter2@h/?k=hunter2" }',
      ].join('\n'),
      [
        `2: replicas[0].url: found "http://a:8000/v1?***", expected ${URL_TITLE}`,
        `3: replicas[1].url: found "http://***@b#***", expected ${URL_TITLE}`,
        `4: replicas[2].url: found "***@c:8000", expected ${URL_TITLE}`,
        `5: replicas[3].url: found "http://a/#***", expected ${URL_TITLE}`,
        `6: replicas[4].dns: found "http://***@e", expected ${DNS_TITLE}`,
        '7: export.endpoint: found "https://collector/?***", expected an http:// or https:// URL without credentials (put them into OTEL_EXPORTER_OTLP_HEADERS), query or fragment',
        '8: trace.url_template: found "https://***@traces/{trace_id}", expected an http:// or https:// URL without credentials, with {trace_id} after its host',
        '9: gateway.name: found "***@h/?***", expected a name of letters, digits and . _ ~ -, at most 128',
      ],
    ],
    [
      'a url that YAML reads as a key',
      'replicas:\n- { name: a, url:"http://u:hunter2@a?key=hunter2" }\n',
      [
        '2: replicas[0]."***@a?***": unknown key, expected one of name, url, dns, kubernetes, host, gpu_model, gpu_count, gpu_hour_price, models, engine, api_key, tls, role, max_inflight',
        '2: replicas[0].url: found nothing, expected a URL here, or a name under the key dns',
      ],
    ],
    [
      'urls with credentials or of another scheme',
      'replicas:\n- name: a\n  url: http://user:hunter2@a\n- name: b\n  url: unix:/run/x\n',
      [
        `3: replicas[0].url: found "http://***@a", expected ${URL_TITLE}`,
        `5: replicas[1].url: found "unix:/run/x", expected ${URL_TITLE}`,
      ],
    ],
    [
      'invalid DNS names, or one beside a url',
      'replicas:\n- { name: a, dns: "http://10.0.0.1:8000" }\n- { name: b, dns: "http://_http._tcp.b.test:8000" }\n- { name: c, dns: "http://[::1]" }\n- { name: d, dns: b.test }\n- { name: e, dns: "http://e", url: "http://e" }',
      [
        `2: replicas[0].dns: found "http://10.0.0.1:8000", expected ${DNS_TITLE}`,
        `3: replicas[1].dns: found "http://_http._tcp.b.test:8000", expected ${DNS_TITLE}`,
        `4: replicas[2].dns: found "http://[::1]", expected ${DNS_TITLE}`,
        `5: replicas[3].dns: found "b.test", expected ${DNS_TITLE}; http:// is missing`,
        '6: replicas[4].dns: a replica has either url or dns, not both',
      ],
    ],
    [
      'pods of Kubernetes',
      'replicas:\n- { name: a, url: "http://a", kubernetes: { service: a } }\n- { name: b, kubernetes: { service: B } }\n- { name: c, kubernetes: { service: c, port: 1, port_name: d } }\n- { name: d, tls: { verify: false }, kubernetes: { service: d } }',
      [
        '2: replicas[0].kubernetes: a replica has either url or kubernetes, not both',
        '3: replicas[1].kubernetes.service: found "B", expected the name of a Service',
        '4: replicas[2].kubernetes.port_name: there is either port or port_name, not both',
        '5: replicas[3].tls: the URL of this replica is not https://',
      ],
    ],
    [
      'invalid models',
      'replicas:\n- { name: a, url: "http://a", models: [] }\n- { name: b, url: "http://b", models: llama }\n- { name: c, url: "http://c", models: ["*", x] }\n- { name: d, url: "http://d", models: [x, x] }',
      [
        `2: replicas[0].models: found an empty list, expected ${MODELS}`,
        `3: replicas[1].models: found "llama", expected ${MODELS}`,
        `4: replicas[2].models: found a list, expected ${MODELS}`,
        `5: replicas[3].models: found a list, expected ${MODELS}`,
      ],
    ],
    [
      'statuses that are not retried, or are named twice, and too many attempts',
      `${REPLICA}retry: { statuses: [200, 505, 429], attempts: 11 }\nx-b: 1\n`,
      [
        '2: retry.statuses[0]: found 200, expected 429, or a status from 500 to 504',
        '2: retry.statuses[1]: found 505, expected 429, or a status from 500 to 504',
        '2: retry.attempts: found 11, expected a whole number from 1 to 10',
      ],
    ],
    [
      'aliases of aliases, of themselves, and of no name',
      `${REPLICA}aliases:\n  a: b\n  b: m\n  c: c\n  d: ["m"]\n  e: "*"\n`,
      [
        '3: aliases.a: found "b", expected the name of a model: this is an alias itself',
        '5: aliases.c: found "c", expected the name of a model: this is an alias itself',
        '6: aliases.d: found a list, expected the name of a model, at most 256 characters',
        '7: aliases.e: found "*", expected the name of a model, at most 256 characters',
      ],
    ],
    [
      'aliases without a name',
      `${REPLICA}aliases: { "": m, "*": m }\n`,
      [
        '2: aliases."": found "m", expected names with the names of models, such as gpt-4o: llama-3.3-70b',
        '2: aliases."*": found "m", expected names with the names of models, such as gpt-4o: llama-3.3-70b',
      ],
    ],
    [
      'aliases that are a list',
      `${REPLICA}aliases: [a]\n`,
      ['2: aliases: found a list, expected names with the names of models, such as gpt-4o: llama-3.3-70b'],
    ],
    [
      'a status that is named twice',
      `${REPLICA}retry: { statuses: [503, 503] }\n`,
      [
        '2: retry.statuses: found a list, expected a list of different statuses: 429, 500, 501, 502, 503, 504',
      ],
    ],
    [
      'values that a tag makes of bytes, a time or pairs, which have keys of their own',
      `${REPLICA}export: !!binary aGk=\nlog:\n  level: !!timestamp 2026-11-22\n`,
      [
        '2: export: found a value with a !tag, expected one without',
        '4: log.level: found a value with a !tag, expected one without',
      ],
    ],
    [
      'a port that does not exist',
      'replicas:\n  - { name: a, url: "http://127.0.0.1:99999/v1", models: [m] }\nexport: { endpoint: "http://c:4318" }\n',
      [
        '2: replicas[0].url: found "http://127.0.0.1:99999/v1", expected an http:// or https:// URL without credentials (put a key into api_key), query or fragment; a port is at most 65535',
      ],
    ],
    [
      'unknown keys, similar to known ones or not',
      `gatway: {}\nadmin_listen: localhost:1\ncolour: red\n${REPLICA}timeouts:\n  firstByte: 1s\nlimits:\n  bdy: 1\nexport:\n  retry: { inital: 1s }\n  file: { path: ./records }\n`,
      [
        '1: gatway: unknown key; did you mean gateway?',
        '2: admin_listen: unknown key; did you mean gateway.admin_listen?',
        `3: colour: ${UNKNOWN}`,
        '6: timeouts.firstByte: unknown key; did you mean first_byte?',
        '8: limits.bdy: unknown key; did you mean body?',
        '10: export.retry.inital: unknown key; did you mean initial?',
        '11: export.file.path: unknown key, expected one of max_size, max_age, max_total; or did you mean health.path?',
      ],
    ],
    [
      'an unknown key below a name of its author',
      `${REPLICA}clients_file: c.jsonl\ntenant_limits:\n  acme: { inflight: 3 }\n`,
      [
        '4: tenant_limits.acme.inflight: unknown key, expected one of max_inflight, requests_per_minute, tokens_per_minute',
      ],
    ],
    [
      'invalid addresses',
      `${REPLICA}gateway:\n  listen: 8080\n  admin_listen: "*:9090"\n`,
      [
        `3: gateway.listen: found 8080, expected ${ADDRESS}`,
        `4: gateway.admin_listen: found "*:9090", expected ${ADDRESS}`,
      ],
    ],
    [
      'an invalid number of workers',
      `${REPLICA}gateway: { workers: all }`,
      ['2: gateway.workers: found "all", expected auto, or a whole number from 1 to 256'],
    ],
    [
      'an unknown endpoint',
      `${REPLICA}endpoints: [responses, response]`,
      [
        '2: endpoints[1]: found "response", expected responses, messages, rerank, score, classify, pooling, tokenize, detokenize, audio/transcriptions or audio/translations',
      ],
    ],
    [
      'an endpoint that is named twice',
      `${REPLICA}endpoints: [messages, messages]`,
      [
        '2: endpoints: found a list, expected a list of different names: responses, messages, rerank, score, classify, pooling, tokenize, detokenize, audio/transcriptions, audio/translations',
      ],
    ],
    [
      'invalid durations, sizes, words and flags',
      `${REPLICA}timeouts: { connect: 0s }\nexport: { interval: 10 }\nlimits: { body: 1.5 MiB }\nlog: { level: loud, requests: yes }\nheaders: { tenant: "X Tenant" }`,
      [
        '2: timeouts.connect: found "0s", expected a duration from 1ms to 24h, such as 500ms, 10s, 15m or 1h30m',
        '3: export.interval: found 10, expected a duration from 1ms to 24h, such as 500ms, 10s, 15m or 1h30m',
        '4: limits.body: found "1.5 MiB", expected a size from 1 to 1024GiB, such as 512KiB, 32MiB, 10MB or plain bytes',
        '5: log.level: found "loud", expected fatal, error, warn, info, debug, trace or silent',
        '5: log.requests: found "yes", expected true or false',
        '6: headers.tenant: found "X Tenant", expected the name of a request header',
      ],
    ],
    [
      'values that contradict each other, and another problem',
      `${REPLICA}export: { queue_size: 100, retry: { initial: 9s }, file: { max_size: 1GiB } }\nlimits: { body: 1GiB }\ncolour: red`,
      [
        '2: export.batch_size: 512 is more than export.queue_size, 100',
        '2: export.retry.initial: it is longer than export.retry.max',
        '2: export.file.max_size: it is more than half of export.file.max_total',
        '3: limits.body: it is more than limits.buffered',
        `4: colour: ${UNKNOWN}`,
      ],
    ],
    [
      'a section without keys',
      `${REPLICA}timeouts:\n`,
      ['2: timeouts: found nothing, expected keys with values'],
    ],
    [
      'variables that are not set or not valid',
      'replicas:\n  - name: a\n    url: http://${NOPE}:80\n    host: ${A-b}\n    gpu_model: ${open\n',
      [
        '3: replicas[0].url: found ${NOPE}, but the variable NOPE is not set',
        '4: replicas[0].host: found an invalid reference, expected ${NAME} or ${file:PATH} (or $${ for a literal ${)',
        '5: replicas[0].gpu_model: found an invalid reference, expected ${NAME} or ${file:PATH} (or $${ for a literal ${)',
      ],
    ],
    [
      'keys that cannot be sent, without showing them',
      'replicas:\n- { name: a, url: "http://a", api_key: "${BROKEN_KEY}" }\n- { name: b, url: "http://b", api_key: "sk\\tsecret" }\n- { name: c, url: "http://c", api_key: "" }\n',
      [
        '2: replicas[0].api_key: found "${BROKEN_KEY}", expected a key of printable ASCII characters',
        '3: replicas[1].api_key: found ***, expected a key of printable ASCII characters',
        '4: replicas[2].api_key: found "", expected a key of printable ASCII characters',
      ],
    ],
    [
      'keys in place of their digests, without showing them',
      `${REPLICA}clients:\n- { name: a, key_sha256: sk-secret-1 }\n- { name: b, key_sha256: [sk-secret-2] }\n`,
      [
        `3: clients[0].key_sha256: found ***, expected ${DIGEST}`,
        `4: clients[1].key_sha256[0]: found ***, expected ${DIGEST}`,
      ],
    ],
    [
      'a key of TLS in place of its path, without showing it',
      `gateway: { tls: { cert: a.pem, key: "-----BEGIN PRIVATE KEY-----\\nMIIE" } }\n${REPLICA}`,
      ['1: gateway.tls.key: found ***, expected the path of a PEM file, not its text'],
    ],
    [
      'an address for the name in a certificate, which TLS forbids',
      'replicas:\n- { name: a, url: "https://a", tls: { server_name: 10.0.0.11 } }\n',
      ['2: replicas[0].tls.server_name: found "10.0.0.11", expected a DNS name'],
    ],
    [
      'an invalid Redis URL, without showing it',
      `${REPLICA}state: { redis: "redis://:pass/word@redis/db" }`,
      ['2: state.redis: found ***, expected a URL redis[s]://[[user]:password@]host[:port][/database]'],
    ],
    [
      'a duplicate key, and another problem',
      `${REPLICA}log: {}\nlog: { level: loud }`,
      [
        '3: log: duplicate key',
        '3: log.level: found "loud", expected fatal, error, warn, info, debug, trace or silent',
      ],
    ],
    [
      'a duplicate key below others, once, also where aliases bring it again',
      `x-a: &a\n  - { k: 1, k: 2 }\nx-b: [*a, *a]\n${REPLICA}`,
      ['2: x-a[0].k: duplicate key'],
    ],
    [
      'broken indentation',
      'replicas:\n\t- a',
      ['2: not valid YAML: Tabs are not allowed as indentation; indent with spaces'],
    ],
    ...[
      ['a key too far right', 'gateway:\n  listen: :1\n\n   admin_listen: :2\n', 4],
      ['a key of an item too far right', 'replicas:\n  - name: a\n      url: http://a\n', 3],
      ['a key of an item too far left', 'replicas:\n  - name: a\n   url: http://a\n  - name: b\n', 3],
      ['an item too far right', 'replicas:\n- name: a\n - name: b\n   url: http://b\n', 3],
      ['a section too far right', `${REPLICA} state_dir: x\n`, 2],
    ].map(([title, text, line]): [string, string, string[]] => [
      `${title}, in one message`,
      String(text),
      [
        `${line}: not valid YAML: wrong indentation: begin the line in the column of the keys or items that it belongs to`,
      ],
    ]),
    [
      'a URL that goes on to a path of the API',
      'replicas:\n  - { name: a, url: http://a/v1/chat/completions }\n  - { name: b, url: http://b/proxy/v1/models/ }\n  - { name: c, url: http://c/models }\n',
      [
        '2: replicas[0].url: it ends in /v1/chat/completions: give the base URL, without this path of the API',
        '3: replicas[1].url: it ends in /v1/models: give the base URL, without this path of the API',
      ],
    ],
    [
      'two documents',
      `${REPLICA}---\n${REPLICA}`,
      ['2: not valid YAML: Source contains multiple documents; keep one, and remove ---'],
    ],
    [
      'an undefined alias',
      'replicas: *nothing',
      ['1: replicas: found an alias without an anchor, expected its &anchor above it'],
    ],
  ])('%s', (_, text, problems) => {
    expect(problemsOf(text)).toEqual(problems);
  });

  it('an unquoted variable inside braces gets a hint', () => {
    expect(problemsOf('replicas: [{ name: a, url: http://a, api_key: ${KEY} }]')[0]).toBe(
      '1: not valid YAML: Unexpected flow-map-start at node end; inside { } and [ ], quote a ${NAME}',
    );
  });

  it('broken YAML is reported without quoting the file', () => {
    const broken = [
      'api_key: "sk-secret',
      'api_key: sk-secret: x: y',
      'api_key: !sk-secret x',
      '"sk-secret" sk-secret',
    ];
    for (const text of broken) {
      expect(problemsOf(text)[0]).toMatch(/not valid YAML/);
      expect(problemsOf(text).join()).not.toContain('sk-secret');
    }
  });

  it('aliases that expand exponentially are refused, however deep they are', () => {
    for (const size of [9, 1000]) {
      const levels = 'bcdefgh'.split('').map((name, index) => {
        const below = '*'.concat('abcdefgh'.charAt(index));
        return `${name}: &${name} [${Array(size).fill(below).join(', ')}]`;
      });
      const problems = problemsOf(['a: &a [x, x]', ...levels].join('\n'));
      expect(problems).toEqual([
        expect.stringMatching(/^1: \w: aliases bring more than 100000 values, expected fewer$/),
      ]);
    }
    const merges = Array.from({ length: 40 }, (_, i) => `x-${i + 1}: &a${i + 1} { <<: [*a${i}, *a${i}] }`);
    expect(problemsOf(`x-0: &a0 { k: v }\n${merges.join('\n')}`)).toEqual([
      expect.stringContaining('aliases bring more than 100000 values'),
    ]);
  });

  it.each<[string, string, string[]]>([
    [
      'an alias inside of its anchor',
      `${REPLICA}x-a: &a [1, *a]\n`,
      ['2: x-a[1]: found an alias inside of its anchor, expected it below'],
    ],
    [
      'a merge key of something else',
      `${REPLICA}x-a: &a [1]\nlog: { <<: *a }\nlimits:\n  <<: 5\n`,
      [
        '3: log: found a merge key without keys to merge, expected <<: *anchor of keys with values',
        '5: limits: found a merge key without keys to merge, expected <<: *anchor of keys with values',
      ],
    ],
    [
      'a wrong value that a merge key brings, by the line at its anchor',
      'x-gpu: &gpu\n  gpu_count: many\nreplicas:\n  - <<: *gpu\n    name: a\n    url: http://a\n',
      ['2: replicas[0].gpu_count: found "many", expected a whole number from 0 to 1000000'],
    ],
    [
      'an x- key below the top level',
      `${REPLICA}log: { x-level: debug }\n`,
      ['2: log.x-level: unknown key; keys that begin with x- are ignored at the top level only'],
    ],
    [
      'a missing space after a colon',
      'replicas:\n  - name:a\n    url: http://a\n',
      [
        '2: not valid YAML: Implicit keys need to be on a single line; after a key, here or in the line below, a colon and a space are missing',
      ],
    ],
    [
      'replicas as keys, or as texts',
      'replicas: [http://a]',
      ['1: replicas[0]: found "http://a", expected the keys of a replica, such as name and url'],
    ],
    [
      'two merge keys',
      `x-a: &a { k: 1 }\n${REPLICA}log:\n  <<: *a\n  <<: *a\n`,
      [
        '1: log.k: unknown key, expected one of level, format, requests',
        '5: log."<<": duplicate key, expected <<: [*a, *b]',
      ],
    ],
    [
      'brackets that are nested without end',
      `a: ${'['.repeat(100_000)}`,
      ['1: the file is nested more than 100 levels deep'],
    ],
    [
      'dashes that are nested without end',
      `a:\n  ${'- '.repeat(100_000)}x`,
      ['1: the file is nested more than 100 levels deep'],
    ],
    [
      'keys that are nested in one line without end',
      `a: ${'b: '.repeat(30_000)}x`,
      ['1: the file is nested more than 100 levels deep'],
    ],
    [
      'a variable without braces as a key',
      'replicas: [{ name: a, url: "http://a", api_key: $VLLM_KEY }]',
      [
        '1: replicas[0].api_key: found ***, expected a key; around the name of a variable, braces are missing',
      ],
    ],
    [
      'a file in UTF-16',
      Buffer.from(`\uFEFF${REPLICA}`, 'utf16le').toString('utf8'),
      ['1: the file is not a text in UTF-8'],
    ],
    [
      'a url without a scheme',
      'replicas:\n- { name: a, url: "localhost:8000" }\n- { name: b, url: "[::1]:8000/v1" }\n- { name: c, url: "${KEY}" }\n',
      [
        `2: replicas[0].url: found "localhost:8000", expected ${URL_TITLE}; http:// is missing`,
        `3: replicas[1].url: found "[::1]:8000/v1", expected ${URL_TITLE}; http:// is missing`,
        `4: replicas[2].url: found "\${KEY}", expected ${URL_TITLE}; http:// is missing`,
      ],
    ],
    [
      'an api_key that has its scheme',
      'replicas:\n- { name: a, url: "http://a", api_key: "Bearer sk-1" }\n- { name: b, url: "http://b", api_key: "${HEADER}" }\n- { name: c, url: "http://c", api_key: "Authorization: Bearer sk-1" }\n',
      [
        '2: replicas[0].api_key: found ***, expected the key alone: the gateway writes Bearer before it',
        '3: replicas[1].api_key: found "${HEADER}", expected the key alone: the gateway writes Bearer before it',
        '4: replicas[2].api_key: found ***, expected the key alone: the gateway writes Bearer before it',
      ],
    ],
  ])('%s', (_, text, problems) => {
    expect(problemsOf(text)).toEqual(problems);
  });

  it('a key beside a variable is masked too', () => {
    expect(problemsOf('replicas: [{ name: a, url: "http://a", api_key: "sk-1\t${KEY}" }]')).toEqual([
      '1: replicas[0].api_key: found ***, expected a key of printable ASCII characters',
    ]);
  });
});
