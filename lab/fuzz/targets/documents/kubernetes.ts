import { isIP } from 'node:net';
import {
  type EndpointSlice,
  parseSliceList,
  parseWatchEvent,
} from '../../../../src/replicas/discovery/kubernetes/endpoint-slice.ts';
import { LongLineError, readLines } from '../../../../src/replicas/discovery/kubernetes/json-lines.ts';
import { toReadyEndpoints } from '../../../../src/replicas/discovery/kubernetes/ready-endpoints.ts';
import type { Random } from '../../../fuzz-http/random.ts';
import { type FuzzInput, type FuzzTarget, must, mustEqual, piecesOf, streamOf } from '../../fuzz-target.ts';
import { jsonText } from '../../generate.ts';

const WORDS = [
  ...[
    'kind',
    'EndpointSliceList',
    'items',
    'metadata',
    'resourceVersion',
    'name',
    'ports',
    'endpoints',
    'port',
  ],
  ...[
    'addresses',
    'conditions',
    'ready',
    'terminating',
    'targetRef',
    'Pod',
    'uid',
    'code',
    '10.0.0.1',
    'IPv4',
  ],
];
const ADDRESSES = [
  '10.0.0.1',
  '10.0.0.2',
  '10.0.0.3',
  'fd00::1',
  '::1',
  '10.0.0.1%lo',
  '010.0.0.1',
  'vllm-0',
  '',
];
/** A line of a watch may be so long. */
const MAX_LINE_BYTES = 600;
const CHOICE = { port: null, portName: null, addressType: 'auto' } as const;

/** What the API server of Kubernetes says of the EndpointSlices of a Service. */
export const KUBERNETES: FuzzTarget = {
  name: 'kubernetes',
  reads: 'EndpointSlices from the API server: lists, and the lines of a watch',
  oracle:
    'JSON.parse finds the same lines, names and addresses; a server is used only if all its entries are ready and none terminates; the order of slices and cuts change nothing',
  variants: 2,
  ciInputs: 20_000,
  generate(random, variant) {
    if (variant === 0) return Buffer.from(list(random));
    return Buffer.from(Array.from({ length: random.below(5) }, () => `${line(random)}\n`).join(''));
  },
  check: (input) => (input.variant === 0 ? checkList(input.bytes.toString()) : checkWatch(input)),
  async read(input) {
    if (input.variant === 0) return parseSliceList(input.bytes.toString());
    return (await linesOf(input)).lines.map(parseWatchEvent);
  },
};

function checkList(text: string): boolean {
  const list = parseSliceList(text);
  if (list === null) return false;
  const given = JSON.parse(text);
  mustEqual('the position', list.resourceVersion, given.metadata.resourceVersion);
  const items: readonly GivenSlice[] = given.items ?? [];
  mustEqual(
    'the slices',
    list.slices.map(({ name }) => name),
    items.map(({ metadata }) => metadata.name),
  );
  for (const [index, slice] of list.slices.entries()) checkSlice(slice, items[index] as GivenSlice);
  checkEndpoints(list.slices);
  return true;
}

async function checkWatch(input: FuzzInput): Promise<boolean> {
  const { lines, isCut } = await linesOf(input);
  const whole = input.bytes.toString('latin1').split('\n').slice(0, -1);
  const tooLong = whole.findIndex((each) => each.length > MAX_LINE_BYTES);
  const readable = tooLong === -1 ? whole : whole.slice(0, tooLong);
  const texts = readable.map((each) => Buffer.from(each, 'latin1').toString());
  mustEqual(
    'the lines',
    lines,
    texts.filter((each) => each.trim() !== ''),
  );
  must(tooLong === -1 || isCut, 'a line that is too long is read');
  return lines.map(checkLine).includes(true);
}

function checkLine(line: string): boolean {
  const event = parseWatchEvent(line);
  if (event === null) return false;
  const { type, object } = JSON.parse(line);
  if (event.type === 'error') {
    mustEqual('the type', type, 'ERROR');
    must(Number.isSafeInteger(event.code), `the code is ${event.code}`);
    return true;
  }
  mustEqual('the position', event.resourceVersion, object.metadata.resourceVersion);
  if (event.type === 'deleted') mustEqual('the name', event.name, object.metadata.name);
  if (event.type === 'present') {
    must(type === 'ADDED' || type === 'MODIFIED', `${type} adds a slice`);
    checkSlice(event.slice, object);
    checkEndpoints([event.slice]);
  }
  return true;
}

interface GivenSlice {
  readonly metadata: { readonly name: string };
  readonly addressType: string;
  readonly endpoints?: readonly GivenEndpoint[] | null;
}

interface GivenEndpoint {
  readonly addresses: readonly string[];
  readonly conditions?: { readonly ready?: boolean | null; readonly terminating?: boolean | null } | null;
}

function checkSlice({ addressType, endpoints, ports }: EndpointSlice, given: GivenSlice): void {
  const isOfPods = given.addressType === 'IPv4' || given.addressType === 'IPv6';
  mustEqual('the kind of address', addressType, isOfPods ? given.addressType : 'other');
  mustEqual(
    'the endpoints',
    endpoints.map(({ address, isReady, isTerminating }) => [address, isReady, isTerminating]),
    (isOfPods ? (given.endpoints ?? []) : []).map(({ addresses, conditions }) => [
      addresses[0],
      conditions?.ready ?? true,
      conditions?.terminating ?? false,
    ]),
  );
  for (const { address } of endpoints) must(isIP(address) !== 0, `${address} is no address`);
  for (const { port } of ports)
    must(Number.isInteger(port) && port > 0 && port < 65_536, `${port} is no port`);
}

function checkEndpoints(slices: readonly EndpointSlice[]): void {
  const { endpoints } = toReadyEndpoints(slices, CHOICE);
  const all = slices.flatMap((slice) => slice.endpoints);
  for (const { host } of endpoints) {
    const entries = all.filter(({ address }) => address === host);
    must(
      entries.some(({ isReady, isTerminating }) => isReady && !isTerminating),
      `${host} is used, and is not ready`,
    );
  }
  for (const { pod, isReady, isTerminating, address } of all) {
    if (pod === null || (isReady && !isTerminating)) continue;
    const isUsed = endpoints.some(({ host, server }) => host === address && server?.pod?.uid === pod.uid);
    must(pod.uid === null || !isUsed, `${address} is used, and one of its entries is not ready`);
  }
  const texts = (given: typeof endpoints) => given.map((endpoint) => JSON.stringify(endpoint)).sort();
  mustEqual(
    'the servers of slices in another order',
    texts(toReadyEndpoints(slices.toReversed(), CHOICE).endpoints),
    texts(endpoints),
  );
}

/** `isCut`: a line was too long. */
async function linesOf(input: FuzzInput): Promise<{ lines: string[]; isCut: boolean }> {
  const lines: string[] = [];
  try {
    for await (const each of readLines(streamOf(piecesOf(input)), MAX_LINE_BYTES)) lines.push(each);
    return { lines, isCut: false };
  } catch (error) {
    if (error instanceof LongLineError) return { lines, isCut: true };
    throw error;
  }
}

function list(random: Random): string {
  const items = Array.from({ length: random.below(4) }, () => slice(random));
  const kind = value(random, '"EndpointSliceList"');
  return `{"kind":${kind},"metadata":${metadata(random)},"items":${value(random, `[${items.join(',')}]`)}}`;
}

function line(random: Random): string {
  const type = random.pick(['ADDED', 'ADDED', 'MODIFIED', 'DELETED', 'BOOKMARK', 'ERROR', 'x']);
  const object = type === 'ERROR' ? `{"code":${value(random, '410')}}` : slice(random);
  return `{"type":"${type}","object":${value(random, object)}}`;
}

function metadata(random: Random): string {
  const position = value(random, `"${random.pick(['7', '1024', 'a.b-c~_', '', 'x'.repeat(257), 'a b'])}"`);
  return `{"name":${value(random, `"s-${random.below(3)}"`)},"resourceVersion":${random.chance(70) ? '"7"' : position}}`;
}

function slice(random: Random): string {
  const kind = random.chance(85) ? 'IPv4' : random.pick(['IPv6', 'FQDN', '']);
  const endpoints = Array.from({ length: random.below(4) }, () => endpoint(random, kind));
  const ports = random.chance(80) ? '[{"name":"http","port":8000}]' : `[{"port":${value(random, '0')}}]`;
  return `{"metadata":${metadata(random)},"addressType":"${kind}","ports":${value(random, ports)},"endpoints":${value(random, `[${endpoints.join(',')}]`)}}`;
}

function endpoint(random: Random, kind: string): string {
  const usual = kind === 'IPv6' ? 'fd00::1' : `10.0.0.${1 + random.below(3)}`;
  const address = random.chance(95) ? usual : random.pick(ADDRESSES);
  const flag = () => value(random, random.pick(['true', 'true', 'false', 'null']));
  const conditions = random.chance(80) ? `,"conditions":{"ready":${flag()},"terminating":${flag()}}` : '';
  const pod = random.chance(70)
    ? `,"targetRef":{"kind":"Pod","name":"vllm-${random.below(3)}","uid":${value(random, `"u-${random.below(3)}"`)}}`
    : '';
  return `{"addresses":${value(random, `["${address}"]`)}${conditions}${pod},"nodeName":${value(random, '"node"')}}`;
}

/** This value in most cases, else another. */
function value(random: Random, usual: string): string {
  return random.chance(97) ? usual : jsonText(random, WORDS, 1);
}
