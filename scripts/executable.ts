import { spawnSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { build } from 'rolldown';
import { EMBEDDED_DASHBOARD, ENTRIES, findDashboardFiles, INPUT_OPTIONS, ROOT } from './bundle/options.ts';

/**
 * Builds the gateway as one file that needs no Node: `executable.ts FILE [NODE]`. It is the Node that runs this script, with
 * the bundled code and what src/base/embedded/embedded.ts finds in it, so it runs on the same system and processor. NODE is
 * the binary of the same version for another processor, which the file then is for.
 */

/** As in the Dockerfile. */
const FLAGS = [
  '--disable-sigusr1',
  '--max-semi-space-size=4',
  '--no-parallel-scavenge',
  '--invocation-count-for-maglev=1500',
];

const [given = 'build/gateway', node = process.execPath] = process.argv.slice(2);
const output = resolve(given);

const folder = await mkdtemp(join(tmpdir(), 'spangate-executable-'));
try {
  for (const [name, input] of Object.entries(ENTRIES)) {
    await build({
      ...INPUT_OPTIONS,
      input,
      // A thread of the executable starts others from its assets, and asks import.meta for no file.
      checks: { emptyImportMeta: false },
      output: {
        file: join(folder, name),
        // Node evaluates the code of a thread as CommonJS.
        format: name === 'main' ? 'esm' : 'cjs',
        codeSplitting: false,
        comments: false,
      },
    });
  }
  const config = {
    main: join(folder, 'main'),
    mainFormat: 'module',
    output,
    executable: resolve(node),
    disableExperimentalSEAWarning: true,
    // Compiled code runs on the processor that has compiled it.
    useCodeCache: resolve(node) === process.execPath,
    execArgv: FLAGS,
    assets: {
      'package.json': join(ROOT, 'package.json'),
      'worker-entry': join(folder, 'worker-entry'),
      'history-entry': join(folder, 'history-entry'),
      'body-worker': join(folder, 'body-worker'),
      ...Object.fromEntries(
        [...findDashboardFiles()].map(([name, path]) => [`${EMBEDDED_DASHBOARD}${name}`, path]),
      ),
    },
  };
  const configPath = join(folder, 'sea.json');
  await writeFile(configPath, JSON.stringify(config));
  await mkdir(dirname(output), { recursive: true });
  // V8 takes compiled code only from one that has the same flags.
  const { status } = spawnSync(process.execPath, [...FLAGS, '--build-sea', configPath], { stdio: 'inherit' });
  process.exitCode = status ?? 1;
} finally {
  await rm(folder, { recursive: true });
}
