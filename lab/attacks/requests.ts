import { type Attack, BODY, CHAT, CHAT_LINE, post } from './attack.ts';

const get = (target: string, fields: readonly string[] = ['Host: g'], version = 'HTTP/1.1') =>
  `${[`GET ${target} ${version}`, ...fields].join('\r\n')}\r\n\r\n`;
const refused = (source: string, name: string, bytes: string | Buffer, status = 400): Attack => ({
  name,
  source,
  bytes,
  statuses: [status],
});
const notFound = (source: string, ...targets: readonly string[]): readonly Attack[] =>
  targets.map((target) => ({
    name: `the path ${target}`,
    source,
    bytes: post([`Content-Length: ${BODY.length}`], BODY, target),
    statuses: [404],
    closes: false,
  }));
const length = `Content-Length: ${BODY.length}`;

/** Sound or broken requests that want to reach what they must not, or another protocol. */
export const REQUESTS: readonly Attack[] = [
  ...notFound(
    'CVE-2021-41773; Tsai 2018, "Breaking Parser Logic"',
    ...['//v1/chat/completions', '/v1//chat/completions', '/v1/chat/completions/', '/v1/./chat/completions'],
    ...[
      '/v1/x/../chat/completions',
      '/v1/x/..;/chat/completions',
      '/v1/chat/completions;x',
      '/v1/%2e/chat/completions',
    ],
    ...[
      '/v1/x/%2e%2e/chat/completions',
      '/v1/chat%2fcompletions',
      '/v1/chat%252fcompletions',
      '/v1/chat\\completions',
    ],
    ...[
      '/V1/chat/completions',
      '/v1/chat/completions%00',
      '/v1/chat/completions%0d%0aX:y',
      '/..%2fmetrics',
      '/metrics',
    ],
    ...['/admin/replicas', '/v1/chat/%c0%ae%c0%ae/completions', '/v1/chat/completions#x'],
  ),
  refused('RFC 9112 3.2', 'a NUL in the path', get('/v1/models\0')),
  refused('RFC 9112 3.2', 'a control byte in the path', get('/v1/models\x01')),
  refused('RFC 9112 3.2', 'a space in the target', get('/v1/models x')),
  refused('RFC 9112 3.2', 'a target beyond ASCII', get('/v1/\xe9')),
  refused('RFC 9112 3.2', 'a target that is no path', get('v1/models')),
  {
    ...refused(
      'RFC 9112 3.2.2; SSRF by absolute-form',
      'absolute-form of another host',
      get('http://169.254.169.254/v1/x'),
      404,
    ),
    closes: false,
  },
  {
    name: 'absolute-form of the gateway, another Host',
    source: 'RFC 9112 3.2.2',
    bytes: post([length], BODY, 'http://g/v1/chat/completions').replace('Host: g', 'Host: other'),
    statuses: [404],
    closes: false,
  },
  refused('RFC 9112 3.2.3', 'CONNECT', 'CONNECT g:443 HTTP/1.1\r\nHost: g\r\n\r\n', 404),
  refused(
    'RFC 9112 3.2.3',
    'CONNECT with a chat behind it',
    `CONNECT g:443 HTTP/1.1\r\nHost: g\r\n\r\n${CHAT}`,
    404,
  ),
  {
    name: 'an upgrade to h2c',
    source: 'Bishop Fox 2020, "h2c Smuggling"',
    bytes: post(
      ['Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABk', length],
      BODY,
    ),
    statuses: [200],
    closes: false,
    seen: [CHAT_LINE],
  },
  {
    name: 'an upgrade to a websocket',
    source: 'Emelianov 2019, "websocket-smuggle"',
    bytes: post(['Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 777', length], BODY),
    statuses: [200],
    closes: false,
    seen: [CHAT_LINE],
  },
  refused('RFC 9113 3.4', 'the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  refused('RFC 9112 appendix C.1', 'HTTP/0.9', 'GET /v1/models\r\n\r\n'),
  refused('RFC 9112 2.3', 'a version that does not exist', get('/v1/models', ['Host: g'], 'HTTP/1.2')),
  refused(
    'RFC 9112 6.1',
    'chunks in HTTP/1.0',
    post(['Transfer-Encoding: chunked'], '0\r\n\r\n').replace('HTTP/1.1', 'HTTP/1.0'),
  ),
  refused('RFC 9110 9.1', 'an unknown method', 'SMUGGLE / HTTP/1.1\r\nHost: g\r\n\r\n'),
  refused('RFC 8446 4', 'a TLS hello without TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'),
  refused(
    'RFC 9110 7.2; Kettle 2013, "Practical HTTP Host header attacks"',
    'two Hosts',
    get('/v1/models', ['Host: g', 'Host: h']),
  ),
  refused('RFC 9110 7.2', 'no Host', get('/v1/models', [])),
  refused('RFC 9110 7.2', 'a Host with a path', get('/v1/models', ['Host: g/x'])),
  refused('RFC 9110 7.2', 'a Host with a user', get('/v1/models', ['Host: a@g'])),
  refused('RFC 9110 7.2', 'a Host with a port that is no number', get('/v1/models', ['Host: g:80@x'])),
  refused('RFC 9112 5.2', 'a folded Host', get('/v1/models', ['Host: g\r\n h'])),
  refused(
    'CVE-2018-12121',
    'a head of 1 MB',
    get('/healthz', ['Host: g', `X-A: ${'a'.repeat(1_000_000)}`]),
    431,
  ),
  refused(
    'CVE-2018-12121',
    'a head of 50,000 fields',
    get('/healthz', ['Host: g', ...Array(50_000).fill('a: b')]),
    431,
  ),
  refused('CVE-2018-12121', 'a target of 1 MB', get(`/${'a'.repeat(1_000_000)}`), 431),
  {
    name: '20 pipelined chats',
    source: 'RFC 9112 9.3.2',
    bytes: CHAT.repeat(20),
    statuses: Array(20).fill(200),
    closes: false,
    seen: Array(20).fill(CHAT_LINE),
  },
  {
    name: 'a broken request behind a sound one',
    source: 'RFC 9112 9.3.2',
    bytes: `${CHAT}GET / HTTP/1.1\nHost: g\n\n${CHAT}`,
    statuses: [200, 400],
    seen: [CHAT_LINE],
  },
  refused(
    'RFC 9110 15.5.14',
    'a body over the limit',
    post(['Content-Length: 999999999'], 'x'.repeat(100_000)),
    413,
  ),
  {
    name: 'JSON that is nested 500,000 deep',
    source: 'RFC 8259 9',
    bytes: post([`Content-Length: ${500_000 + 14}`], `{"model":"m",${'['.repeat(500_000)}}`),
    statuses: [400],
    closes: false,
  },
];
