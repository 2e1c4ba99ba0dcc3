import { type Attack, BODY, CHAT_LINE, post, SMUGGLED } from './attack.ts';

const length = `Content-Length: ${BODY.length}`;
const TE = 'Transfer-Encoding: chunked';
const chunked = `d\r\n${BODY}\r\n0\r\n\r\n`;

const refused = (source: string, name: string, bytes: string): Attack => ({
  name,
  source,
  bytes,
  statuses: [400],
});
/** Each of these header lines, with a body that is sound in one reading and hides a request in the other. */
const lines = (source: string, ...all: readonly (readonly [name: string, lines: readonly string[]])[]) =>
  all.map(([name, each]) => refused(source, name, post(each, chunked + SMUGGLED)));
const chunks = (source: string, ...all: readonly (readonly [name: string, body: string])[]) =>
  all.map(([name, body]) => refused(source, name, post([TE], body + SMUGGLED)));

/** Messages of which two programs may read the end, or a field, in two ways. */
export const SMUGGLING: readonly Attack[] = [
  ...lines(
    'RFC 9112 6.3; Linhart et al. 2005, "HTTP Request Smuggling"',
    ['CL.TE', [length, TE]],
    ['TE.CL', [TE, length]],
    ['CL.TE with a length of 0', ['Content-Length: 0', TE]],
    ['two different lengths', [length, 'Content-Length: 4']],
    ['two equal lengths', [length, length]],
    ['a list of lengths', [`${length}, ${BODY.length}`]],
  ),
  ...lines(
    'RFC 9110 8.6; CVE-2018-7159, CVE-2024-27982',
    ['a signed length', [`Content-Length: +${BODY.length}`]],
    ['a negative length', ['Content-Length: -1']],
    ['a hexadecimal length', ['Content-Length: 0xd']],
    ['a length with a space in it', ['Content-Length: 1 3']],
    ['a length beyond 2^64', ['Content-Length: 18446744073709551629']],
    ['a length that is empty', ['Content-Length:']],
    ['a field beginning with a space before the length', [` ${length}`]],
  ),
  ...lines(
    'TE.TE: Kettle 2019, "HTTP Desync Attacks"; CVE-2019-15605, CVE-2020-8287, CVE-2022-32213',
    ['an unknown coding', ['Transfer-Encoding: xchunked']],
    ['chunked before another coding', ['Transfer-Encoding: chunked, identity']],
    ['chunked after another coding', ['Transfer-Encoding: gzip, chunked']],
    ['chunked twice', ['Transfer-Encoding: chunked, chunked']],
    ['two fields, one of them unknown', [TE, 'Transfer-Encoding: cow']],
    ['two fields, in the other order', ['Transfer-Encoding: cow', TE]],
    ['identity beside a length', ['Transfer-Encoding: identity', length]],
    ['chunked in quotes', ['Transfer-Encoding: "chunked"']],
    ['chunked with a parameter', ['Transfer-Encoding: chunked;q=1']],
    ['a vertical tab before chunked', ['Transfer-Encoding: \x0bchunked']],
    ['a NUL behind chunked', ['Transfer-Encoding: chunked\0']],
    ['an empty coding', ['Transfer-Encoding:']],
    ['a byte of Latin-1 before chunked', ['Transfer-Encoding: \xa0chunked']],
  ),
  ...lines(
    'RFC 9112 5.1; CVE-2021-22959',
    ['a space before the colon', ['Transfer-Encoding : chunked']],
    ['a tab before the colon', ['Transfer-Encoding\t: chunked']],
    ['a vertical tab before the colon', ['Transfer-Encoding\x0b: chunked']],
    ['a NUL in a name', [length, 'Transfer-Encoding\0: chunked']],
    ['a space in a name', [length, 'Transfer Encoding: chunked']],
    ['a name without a colon', [length, 'Transfer-Encoding chunked']],
    ['a field without a name', [length, ': chunked']],
    ['a name with a bracket', [length, 'X[A]: b']],
  ),
  ...lines(
    'obs-fold, RFC 9112 5.2; CVE-2022-32215',
    ['a folded coding', ['Transfer-Encoding:\r\n chunked']],
    ['a folded field before the coding', [length, `X-A: b\r\n ${TE}`]],
    ['a first field that is folded', [` ${TE}`, length]],
  ),
  ...lines(
    'RFC 9112 2.2; CVE-2023-30589, CVE-2022-32214',
    ['a bare CR before a field', [length, `X-A: b\r${TE}`]],
    ['a bare LF before a field', [length, `X-A: b\n${TE}`]],
    ['a bare CR at the end of a value', [`${TE}\r`, length]],
    ['a NUL in a value', [length, 'X-A: b\0c']],
  ),
  refused('RFC 9112 2.2', 'lines that end in LF', post([length], BODY + SMUGGLED).replaceAll('\r\n', '\n')),
  refused('RFC 9112 2.2', 'lines that end in CR', post([length], BODY + SMUGGLED).replaceAll('\r\n', '\r')),
  ...chunks(
    'RFC 9112 7.1; CVE-2022-32213',
    ['a size that is no number', `zz\r\n${BODY}\r\n0\r\n\r\n`],
    ['a negative size', `-d\r\n${BODY}\r\n0\r\n\r\n`],
    ['a size with 0x', `0xd\r\n${BODY}\r\n0\r\n\r\n`],
    ['a size behind a space', ` d\r\n${BODY}\r\n0\r\n\r\n`],
    ['a size beyond 2^64', `1000000000000000d\r\n${BODY}\r\n0\r\n\r\n`],
    ['a size with an underscore', `0_d\r\n${BODY}\r\n0\r\n\r\n`],
    ['an empty size', `\r\n${BODY}\r\n0\r\n\r\n`],
    ['a chunk that is longer than its size', `5\r\n${BODY}\r\n0\r\n\r\n`],
    ['a chunk that is shorter than its size', `f\r\n${BODY}\r\n0\r\n\r\n`],
  ),
  ...chunks(
    'Weikop 2025, "Funky chunks"; CVE-2021-22960, CVE-2025-22871',
    ['a size line that ends in LF', `d\n${BODY}\r\n0\r\n\r\n`],
    ['an extension with a bare LF', `d;x\n${BODY}\r\n0\r\n\r\n`],
    ['an extension with a bare CR', `d;x\rX\r\n${BODY}\r\n0\r\n\r\n`],
    ['an extension without a name', `d;\r\n${BODY}\r\n0\r\n\r\n`],
    ['data that ends in LF', `d\r\n${BODY}\n0\r\n\r\n`],
    ['data that ends in two other bytes', `d\r\n${BODY}XX0\r\n\r\n`],
    ['a last chunk that ends in LF', `d\r\n${BODY}\r\n0\n\n`],
    ['trailer fields that frame', `d\r\n${BODY}\r\n0\r\nContent-Length: 5\r\n\r\n`],
    ['a folded trailer field', `d\r\n${BODY}\r\n0\r\nX-A: b\r\n c\r\n\r\n`],
  ),
  ...chunks('CVE-2024-22019', ['an extension without end', `d;a=${'x'.repeat(100_000)}`]),
  {
    name: 'CL.0: a body for a path that takes none',
    source: 'Kettle 2022, "Browser-Powered Desync Attacks"',
    bytes: post([`Content-Length: ${SMUGGLED.length}`], SMUGGLED, '/healthz'),
    statuses: [404],
  },
  {
    name: 'TE.0: chunks for a path that takes none',
    source: 'sw33tLie et al. 2024, "TE.0 HTTP Request Smuggling"',
    bytes: post([TE], `${SMUGGLED.length.toString(16)}\r\n${SMUGGLED}\r\n0\r\n\r\n`, '/healthz'),
    statuses: [404],
  },
  {
    name: '0.CL: a body behind an expectation',
    source: 'Kettle 2025, "HTTP/1.1 must die"',
    bytes: post(['Expect: 100-continue', `Content-Length: ${SMUGGLED.length}`], SMUGGLED, '/healthz'),
    statuses: [404],
  },
  {
    name: 'an expectation that nobody knows',
    source: 'Kettle 2025, "HTTP/1.1 must die"',
    bytes: post(['Expect: y 100-continue', length], BODY),
    statuses: [200],
    closes: false,
    seen: [CHAT_LINE],
  },
  {
    name: 'a body that is a request',
    source: 'RFC 9112 6.3',
    bytes: post([`Content-Length: ${SMUGGLED.length}`], SMUGGLED),
    statuses: [400],
    closes: false,
  },
];
