import { startProgram, toCount } from '#testkit/programs/program.ts';
import { fuzz, toReport } from './fuzz.ts';

const USAGE = `npm run fuzz:http -- [options]
  Gives the same bytes to the gateway's HTTP/1.1 parser and to llhttp, Node's own, in its strict mode. llhttp must
  accept what ours accepts, and both must read the same messages. Prints the first input for which that does not hold,
  and exits with 1.
  --inputs N  number of inputs (100000)
  --seed N    seed of their generator (1)
  --first N   index of the first input (0), to repeat a finding`;

/** Inputs between two lines of progress. */
const REPORT_INPUTS = 1_000_000;

const { inputs, seed, first } = startProgram(USAGE, {
  inputs: { type: 'string', default: '100000' },
  seed: { type: 'string', default: '1' },
  first: { type: 'string', default: '0' },
});
process.exitCode = run(toCount(inputs), toCount(seed), toCount(first));

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
