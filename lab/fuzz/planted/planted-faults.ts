/** A fault that the fuzzer must find: a change of a line of the sources, made where they are loaded. */
export interface PlantedFault {
  readonly name: string;
  /** Which target must find it. */
  readonly target: string;
  /** From the root of the repository. */
  readonly file: string;
  /** What stands there exactly once. */
  readonly from: string;
  readonly to: string;
}

const JWT = { target: 'jwt', file: 'src/access/jwt/verify-jwt.ts' } as const;
const KUBERNETES = 'src/replicas/discovery/kubernetes';

/** The faults of the targets that read documents and files. */
export const PLANTED_FAULTS: readonly PlantedFault[] = [
  {
    ...JWT,
    name: 'a token for another audience is valid',
    from: 'audience: [...rules.audiences],',
    to: '',
  },
  {
    ...JWT,
    name: 'a token is valid after its end',
    from: 'clockTolerance: TOLERANCE_S,',
    to: 'clockTolerance: 1e13,',
  },
  {
    ...JWT,
    name: 'a claim with a dot in its name is not found',
    from: 'if (Object.hasOwn(payload, claim)) return payload[claim as keyof typeof payload];',
    to: '',
  },
  {
    name: 'the private part of a key is kept',
    target: 'jwt',
    file: 'src/access/jwt/jwks.ts',
    from: "['OKP', ['crv', 'x']],",
    to: "['OKP', ['crv', 'x', 'd']],",
  },
  {
    name: 'a ledger span that was changed counts',
    target: 'ledger',
    file: 'src/records/verify/exported-span.ts',
    from: "isIntact: digest !== null && Buffer.from(digest).toString('hex') === chain,",
    to: 'isIntact: true,',
  },
  {
    name: 'the digest of a record is not compared',
    target: 'ledger',
    file: 'src/records/verify/seq-pages.ts',
    from: '&& !slot.equals(digest);',
    to: '&& slot.length === 0;',
  },
  {
    name: 'what a read ends with is lost',
    target: 'ledger',
    file: 'src/records/files/file-lines.ts',
    from: 'add(chunk.subarray(start));',
    to: '',
  },
  {
    name: 'a request that never ends hides the later ones of its file',
    target: 'export-trace',
    file: 'src/records/trace/write-trace.ts',
    from: 'if (first !== -1 && ',
    to: 'if (',
  },
  {
    name: 'a record that was sent twice is replayed twice',
    target: 'export-trace',
    file: 'src/records/trace/write-trace.ts',
    from: 'ids.add(request.id);',
    to: '',
  },
  {
    name: 'a short last block has the id of a whole one',
    target: 'export-trace',
    file: 'src/records/trace/trace-lines.ts',
    from: 'if (endTokens > request.inputTokens) return null;',
    to: '',
  },
  {
    name: 'the drain of a damaged entry is forgotten',
    target: 'state',
    file: 'src/replicas/drains/drain-file.ts',
    from: 'state ?? (isObject(each) && each.drained === true ? DAMAGED_DRAIN : null);',
    to: 'state;',
  },
  {
    name: 'the checksum of a spool line is not compared',
    target: 'state',
    file: 'otel/disk/spool.ts',
    from: 'encodedSpan.length > 0 && toChecksum(encodedSpan) === checksum',
    to: 'encodedSpan.length > 0',
  },
  {
    name: 'a member of a fleet may have any id',
    target: 'state',
    file: 'src/fleet/membership-file.ts',
    from: 'return isLogicalTimestamp(entry[0]) &&',
    to: 'return',
  },
  {
    name: 'a mistake is reported two lines further down',
    target: 'config',
    file: 'src/config/yaml/yaml-source.ts',
    from: 'lines.linePos(offset).line;',
    to: 'lines.linePos(offset).line + 2;',
  },
  {
    name: 'a size is printed twice as large',
    target: 'config',
    file: 'src/config/schema/codecs.ts',
    from: 'print: printSize,',
    to: 'print: (bytes) => printSize(2 * bytes),',
  },
  {
    name: 'two clients may share a key in capitals',
    target: 'clients',
    file: 'src/config/schema/clients.ts',
    from: '.toLowerCase()',
    to: '',
  },
  {
    name: 'a pod that one of two slices calls ready gets requests',
    target: 'kubernetes',
    file: `${KUBERNETES}/ready-endpoints.ts`,
    from: 'entries.every(',
    to: 'entries.some(',
  },
  {
    name: 'a line of a watch may be as long as it likes',
    target: 'kubernetes',
    file: `${KUBERNETES}/json-lines.ts`,
    from: 'if (heldBytes + end - start > maxBytes) throw new LongLineError();',
    to: '',
  },
  {
    name: 'a resumed rollout may signal any process group',
    target: 'rollout',
    file: 'src/rollout/progress-file/state-file.ts',
    from: 'pid: z.int().min(2)',
    to: 'pid: z.int()',
  },
];
