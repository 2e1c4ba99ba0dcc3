import { parseTraceparent, parseTracestate } from '../../../../otel/span/incoming-context.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzTarget, must, mustEqual } from '../../fuzz-target.ts';

const IDS = [
  '4bf92f3577b34da6a3ce929d0e0e4736',
  '00f067aa0ba902b7',
  '0'.repeat(32),
  '0'.repeat(16),
  'ABCDEF0123456789',
];
const VERSIONS = ['00', '00', '01', 'cc', 'ff', '0', '000'];
const FLAGS = ['00', '01', 'ff', '1', '001', '0g'];
const KEYS = ['foo', 'a', 'fw529a3039@dt', '0_-*/a', 'Foo', '_x', 'k'.repeat(256), 'k'.repeat(257), ''];
const VALUES = ['1', '!~ x', ' x', 'x ', '', 'a=b', 'é', '\t', 'v'.repeat(130), 'v'.repeat(257)];

/** The trace context of a request. */
export const TRACE: FuzzTarget = {
  name: 'trace',
  reads: 'traceparent and tracestate',
  oracle: 'a reader that follows the W3C text word by word; at most 512 characters of printable ASCII go on',
  variants: 2,
  ciInputs: 20_000,
  generate: (random, variant) =>
    Buffer.from(variant === 0 ? traceparent(random) : tracestate(random), 'latin1'),
  check({ bytes, variant }) {
    const text = bytes.toString('latin1');
    return variant === 0 ? checkTraceparent(text) : checkTracestate(text);
  },
  read({ bytes, variant }) {
    const text = bytes.toString('latin1');
    return variant === 0 ? parseTraceparent(text) : parseTracestate(text);
  },
};

function checkTraceparent(text: string): boolean {
  const context = parseTraceparent(text);
  const [version = '', traceId = '', spanId = '', flags = '', ...rest] = text.split('-');
  const isValid =
    /^[0-9a-f]{2}$/.test(version) &&
    version !== 'ff' &&
    /^[0-9a-f]{32}$/.test(traceId) &&
    /[^0]/.test(traceId) &&
    /^[0-9a-f]{16}$/.test(spanId) &&
    /[^0]/.test(spanId) &&
    /^[0-9a-f]{2}$/.test(flags) &&
    (version !== '00' || rest.length === 0);
  // Several fields are joined by commas; white space around a value, and line ends, never come out of a head.
  if (text.includes(',') || text !== text.trim() || /[\r\n]/.test(text)) return false;
  must(
    (context !== null) === isValid,
    `${isValid ? 'a valid' : 'an invalid'} traceparent is taken for the opposite`,
  );
  if (context === null) return false;
  mustEqual('the ids', [context.traceId, context.spanId], [traceId, spanId]);
  mustEqual('the flag', context.traceFlags & 1, Number.parseInt(flags, 16) & 1);
  return true;
}

function checkTracestate(text: string): boolean {
  const passed = parseTracestate(text);
  const members = text
    .split(',')
    .map((member) => member.replace(/^[ \t]+/, '').replace(/[ \t]+$/, ''))
    .filter((member) => member !== '');
  const isValid = members.length > 0 && members.length <= 32 && members.every(isMember);
  if (passed === undefined) {
    must(!isValid || members.join().length > 512, 'a valid tracestate is refused');
    return false;
  }
  must(isValid, 'an invalid tracestate is passed on');
  must(passed.length <= 512 && /^[ -~]+$/.test(passed), 'what goes on is too long, or no ASCII');
  const keyOf = (member: string) => member.slice(0, member.indexOf('='));
  const first = members.filter(
    (member, index) => members.findIndex((other) => keyOf(other) === keyOf(member)) === index,
  );
  const kept = passed.split(',');
  mustEqual(
    'the members that go on',
    kept,
    first.filter((member) => kept.includes(member)),
  );
  mustEqual('a tracestate that is read again', parseTracestate(passed), passed);
  return true;
}

function isMember(member: string): boolean {
  const [key = '', ...values] = member.split('=');
  const [value = ''] = values;
  const isKey = key.length <= 256 && /^[a-z0-9][a-z0-9_*/@-]*$/.test(key);
  return isKey && values.length === 1 && value !== '' && value.length <= 256 && /^[ -~]*$/.test(value);
}

function traceparent(random: Random): string {
  const id = (usual: number) => (random.chance(85) ? (IDS[usual] ?? '') : random.pick(IDS));
  const parts = [random.pick(VERSIONS), id(0), id(1), random.chance(70) ? '01' : random.pick(FLAGS)];
  return [...parts, ...(random.chance(15) ? ['extra'] : [])].join('-');
}

function tracestate(random: Random): string {
  const count = random.chance(90) ? random.below(6) : random.below(40);
  const members = Array.from({ length: count }, (_, index) => {
    if (random.chance(80))
      return `${random.pick(['a', 'b', `k${index}`])}=${random.pick(['1', 'x y', 'v'.repeat(100)])}`;
    return `${random.pick(KEYS)}${random.pick(['=', '=', ' =', ''])}${random.pick(VALUES)}`;
  });
  return members.join(random.pick([',', ', ', '\t,', ',,']));
}
