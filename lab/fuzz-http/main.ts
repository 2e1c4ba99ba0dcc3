import { parseArgs } from 'node:util';
import { fuzz, toReport } from './fuzz.ts';

/**
 * Puts the same bytes to the gateway's HTTP/1.1 parser and to llhttp, Node's own, in its strict mode. Whatever ours
 * accepts, llhttp has to accept, and both have to read the same messages. Exits 1 at the first input where that does
 * not hold, and prints it.
 */
const USAGE = `npm run fuzz:http -- [options]
  --inputs N   how many inputs (100000)
  --seed N     the seed of their generator (1)
  --first N    the index of the first one (0), to see one again`;

/** Between two lines that say how far it is. */
const REPORT_INPUTS = 1_000_000;

const { values } = parseArgs({
  options: {
    inputs: { type: 'string', default: '100000' },
    seed: { type: 'string', default: '1' },
    first: { type: 'string', default: '0' },
    help: { type: 'boolean', default: false },
  },
});

if (values.help) console.log(USAGE);
else process.exitCode = run(toCount(values.inputs), toCount(values.seed), toCount(values.first));

function run(inputs: number, seed: number, first: number): number {
  const startedMs = performance.now();
  const totals = { accepted: 0, refused_by_us: 0, refused_by_both: 0, incomplete: 0 };
  const end = first + inputs;
  for (let at = first; at < end; at += REPORT_INPUTS) {
    const { counts, finding } = fuzz({ seed, first: at, inputs: Math.min(REPORT_INPUTS, end - at) });
    if (finding !== null) {
      console.error(toReport(finding));
      return 1;
    }
    totals.accepted += counts.accepted;
    totals.refused_by_us += counts.refused_by_us;
    totals.refused_by_both += counts.refused_by_both;
    totals.incomplete += counts.incomplete;
    if (at + REPORT_INPUTS < end) console.error(`${at + REPORT_INPUTS - first} inputs …`);
  }
  const seconds = ((performance.now() - startedMs) / 1000).toFixed(1);
  console.log(
    `seed ${seed}: ${inputs} inputs, ${totals.accepted} accepted by both, ${totals.refused_by_us} refused by us only, ` +
      `${totals.refused_by_both} refused by both, ${totals.incomplete} incomplete, ${seconds} s (llhttp ${process.versions.llhttp})`,
  );
  return 0;
}

function toCount(text: string): number {
  if (!/^[0-9]{1,15}$/.test(text)) throw new Error(`${text} is no count\n${USAGE}`);
  return Number(text);
}
