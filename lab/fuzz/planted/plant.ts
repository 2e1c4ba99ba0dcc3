import { registerHooks } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { ROOT } from '#testkit/programs/results.ts';
import { PLANTED_FAULTS } from './planted-faults.ts';

/*
 * A process with one planted fault: `node plant.ts INDEX INPUTS`. Prints how many inputs its target got and what was
 * found, as JSON; null: nothing.
 */

const [index = '', inputs = ''] = process.argv.slice(2);
const fault = PLANTED_FAULTS[Number(index)];
if (fault === undefined) throw new Error(`there is no fault ${index}`);
const { file, from, to } = fault;
const url = pathToFileURL(join(ROOT, file)).href;
let isPlanted = false;
registerHooks({
  load(loaded, context, nextLoad) {
    const result = nextLoad(loaded, context);
    if (loaded !== url) return result;
    const parts = String(result.source).split(from);
    if (parts.length !== 2) throw new Error(`${file} has ${parts.length - 1} times: ${from}`);
    isPlanted = true;
    return { ...result, source: parts.join(to) };
  },
});

const [{ TARGETS }, { runTarget }] = await Promise.all([
  import('../targets/targets.ts'),
  import('../run-target.ts'),
]);
const target = TARGETS.find(({ name }) => name === fault.target);
if (target === undefined || !isPlanted) throw new Error(`no target ${fault.target} that loads ${file}`);
const result = await runTarget(target, { seed: 1, first: 0, inputs: Number(inputs) });
const [reason = ''] = result.finding?.reason.split('\n', 1) ?? [];
console.log(JSON.stringify({ inputs: result.inputs, reason: result.finding === null ? null : reason }));
