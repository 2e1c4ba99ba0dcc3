import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startProgram } from '#testkit/programs/program.ts';
import { startProgress } from '#testkit/programs/progress.ts';
import {
  checkSums,
  findFile,
  installFile,
  installPackage,
  packCommit,
  readProcessor,
  unpackFile,
} from './artefacts.ts';
import { emulate, findEmulator } from './emulated.ts';
import { upgrade } from './upgrade.ts';

const USAGE = `npm run lab -- release [options]
  Installs what \`npm run release\` has put into build/release, each in a clean folder, by the commands of docs/install.md.
  Then two gateways behind HAProxy, under load, go from the package of an earlier commit to the new package, to the single
  file, and back; state_dir stays. Exits with 1 if a request fails, a record is missing, or drains, history or spool are
  not kept. The executable for the other processor runs under qemu, if that is installed with its libraries (Debian:
  qemu-user-static, libc6-arm64-cross, libstdc++6-arm64-cross, libatomic1-arm64-cross). Needs haproxy.
  --from    the folder of the release (default build/release)
  --before  the package to upgrade from: a .tgz, or a commit, whose package is made (default HEAD~1)`;

const { from, before } = startProgram(USAGE, {
  from: { type: 'string', default: 'build/release' },
  before: { type: 'string', default: 'HEAD~1' },
});
const progress = startProgress(5);
await using folder = await mkdtempDisposable(join(tmpdir(), 'spangate-release-'));
const inFolder = (name: string) => join(folder.path, name);

console.log(`sha256sum --check: ${await checkSums(from)} files are right`);
const installed = await progress.during('installs the package', async () =>
  installPackage(await findFile(from, /^spangate-[\d.]+\.tgz$/), inFolder('package')),
);
console.log(`npm install --global spangate.tgz: gateway --version says ${installed.version}`);
const other = process.arch === 'x64' ? 'arm64' : 'x64';
const { own, otherFile } = await progress.during('unpacks the executables', async () => ({
  own: await installFile(await findFile(from, new RegExp(`-linux-${process.arch}\\.gz$`)), inFolder('file')),
  otherFile: await unpackFile(await findFile(from, new RegExp(`-linux-${other}\\.gz$`)), inFolder('other')),
}));
const processor = await readProcessor(otherFile);
console.log(`gunzip gateway-linux-${process.arch}.gz: gateway --version says ${own.version}`);
console.log(`gunzip gateway-linux-${other}.gz: an executable for ${processor}`);
const emulator = findEmulator(other);
if (typeof emulator === 'string') console.log(`It was not run: this machine has ${emulator}.`);
else {
  const said = await progress.during(`runs the executable for ${other} under qemu`, () =>
    emulate(emulator, otherFile, inFolder('emulated')),
  );
  for (const line of said) console.log(`under qemu: ${line}`);
}
const earlier = await progress.during('makes and installs the earlier package', async () => {
  const tarball = before.endsWith('.tgz') ? before : await packCommit(before, inFolder('earlier-checkout'));
  return await installPackage(tarball, inFolder('earlier'));
});
const first = { ...earlier, version: `${earlier.version} (before)` };
const next = [
  { ...installed, version: `${installed.version} (package)` },
  { ...own, version: `${own.version} (single file)` },
  first,
];
const report = await progress.during('upgrades under load, and goes back', (tell) =>
  upgrade([first, ...next], tell),
);

console.log(
  '\n| Gateway | From | To | Serves after | Sent from the spool | History before, after | Drain |\n|---|---|---|--:|--:|---|---|',
);
for (const each of report.replacements) {
  const { gateway, startMs, restored, historyBefore, historyAfter, isDrainKept } = each;
  const history = `${historyBefore}, ${historyAfter}`;
  console.log(
    `| ${gateway} | ${each.from} | ${each.to} | ${(startMs / 1000).toFixed(1)} s | ${restored} | ${history} | ${isDrainKept ? 'kept' : 'LOST'} |`,
  );
}
const { requests, perSecond, failures, records, missing, unknown } = report;
console.log(`\n${requests} requests, ${perSecond} per second: ${failures.length} failed.`);
console.log(`${records} records: ${missing} missing, ${unknown} of no request.`);
for (const failure of failures.slice(0, 20)) console.log(`  ${failure}`);

const isKept = report.replacements.every(
  ({ historyBefore, historyAfter, isDrainKept }) =>
    isDrainKept && historyBefore > 0 && historyAfter >= historyBefore,
);
const isSpooled = report.replacements.some(({ restored }) => restored > 0);
if (failures.length > 0 || missing > 0 || processor !== other || !isKept || !isSpooled) process.exitCode = 1;
