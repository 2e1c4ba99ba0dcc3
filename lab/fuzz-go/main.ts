import { startProgram, toCount } from '#testkit/programs/program.ts';
import { Random } from '../fuzz-http/random.ts';
import { areSame, RESTRICTED, readWithGateway, toComparableOfGo, UNRESTRICTED } from './compare.ts';
import { type GeneratedBody, generateBody } from './generate.ts';
import { type GoReader, startGoReader } from './read-with-go.ts';

const USAGE = `npm run fuzz:go -- [options]
  Gives the same request bodies to the gateway and to encoding/json of Go, which does not tell upper case from lower case.
  Of what the gateway relays for a key with models or limits, both must read the same. Prints the first body for which that
  does not hold, and exits with 1; also if no refused body was read differently. Needs the command go.
  --inputs N  number of bodies (100000)
  --seed N    seed of their generator (1)
  --first N   index of the first body (0), to repeat a finding`;

/** Bodies that are with the program in Go at a time. */
const BATCH = 500;

const values = startProgram(USAGE, {
  inputs: { type: 'string', default: '100000' },
  seed: { type: 'string', default: '1' },
  first: { type: 'string', default: '0' },
});
process.exitCode = await run(toCount(values.inputs), toCount(values.seed), toCount(values.first));

/** How many bodies there were of each kind. */
interface Counts {
  /** Relayed by the gateway, and read alike by both. */
  alike: number;
  /** Relayed by the gateway, and refused by Go. */
  refusedByGo: number;
  /** Refused with `ambiguous_member`, and Go reads the same, or refuses it too. */
  refusedAlike: number;
  /** Refused with `ambiguous_member`, and Go reads something else. */
  refusedOther: number;
  /** Refused for another reason. */
  refused: number;
}

async function run(inputs: number, seed: number, first: number): Promise<number> {
  using go = startGoReader();
  const counts: Counts = { alike: 0, refusedByGo: 0, refusedAlike: 0, refusedOther: 0, refused: 0 };
  const startedMs = performance.now();
  for (let at = first; at < first + inputs; at += BATCH) {
    const size = Math.min(BATCH, first + inputs - at);
    const bodies = Array.from({ length: size }, (_, index) => generateBody(new Random(seed, at + index)));
    const found = await compareAll(bodies, go, counts);
    if (found === null) continue;
    const again = `npm run fuzz:go -- --seed ${seed} --first ${at + found.index} --inputs 1`;
    console.error(`FOUND: ${found.body}\ngateway: ${found.gateway}\nGo:      ${found.go}\nagain:   ${again}`);
    return 1;
  }
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(
    `seed ${seed}: ${inputs} bodies; relayed and read alike: ${counts.alike}; relayed, refused by Go: ${counts.refusedByGo}; ` +
      `ambiguous_member: ${counts.refusedOther} that Go reads otherwise, ${counts.refusedAlike} others; ` +
      `refused for another reason: ${counts.refused}; ${seconds} s`,
  );
  // A rule that refuses what nobody reads otherwise would prove nothing. One body alone is the repetition of a finding.
  return counts.refusedOther > 0 || inputs === 1 ? 0 : 1;
}

interface Finding {
  readonly index: number;
  readonly body: string;
  readonly gateway: string;
  readonly go: string;
}

async function compareAll(
  bodies: readonly GeneratedBody[],
  go: GoReader,
  counts: Counts,
): Promise<Finding | null> {
  const requests = await go.read(bodies.map(({ bytes }) => bytes));
  for (const [index, body] of bodies.entries()) {
    const request = requests[index] ?? null;
    const ofGo = request === null ? null : toComparableOfGo(request, body.path);
    const given = readWithGateway(body, RESTRICTED);
    if ('refused' in given) {
      if (given.refused !== 'ambiguous_member') counts.refused++;
      else if (isReadOtherwise(body, ofGo)) counts.refusedOther++;
      else counts.refusedAlike++;
    } else if (ofGo === null) {
      counts.refusedByGo++;
    } else if (areSame(given.read, ofGo)) {
      counts.alike++;
    } else {
      const [gateway, other] = [JSON.stringify(given.read), JSON.stringify(ofGo)];
      return { index, body: `${body.path} ${body.bytes.toString()}`, gateway, go: other };
    }
  }
  return null;
}

/** Whether Go would have read something else than the gateway. */
function isReadOtherwise(body: GeneratedBody, ofGo: object | null): boolean {
  const unrestricted = readWithGateway(body, UNRESTRICTED);
  return ofGo !== null && !('read' in unrestricted && areSame(unrestricted.read, ofGo));
}
