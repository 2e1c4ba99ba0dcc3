import { execFile } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { parseAllDocuments } from 'yaml';
import { temporaryFolder } from '#testkit/processes/temporary-folder.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../../..');
const CHART = join(ROOT, 'deploy/helm/spangate');
/** Of which kubectl-validate has the schemas. */
const KUBERNETES = '1.30.0';

/** What every manifest has. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string };
}

/** The path of one of deploy/helm/examples. */
export function exampleOf(name: string): string {
  return join(ROOT, `deploy/helm/examples/${name}.yaml`);
}

/** Runs helm, which is built if need be; rejects with what it prints when it refuses. */
async function helm(...args: string[]): Promise<string> {
  const { stdout } = await run(await toolOf('helm'), args, { maxBuffer: 64 << 20 });
  return stdout;
}

/** Renders the chart as the release `spangate`, with further options of helm. */
export async function render(...options: string[]): Promise<string> {
  return await helm('template', 'spangate', CHART, '--kube-version', KUBERNETES, ...options);
}

/** Lints the chart with one of the examples. */
export async function lint(example: string): Promise<string> {
  const options = ['--strict', '--kube-version', KUBERNETES, '--values', exampleOf(example)];
  return await helm('lint', CHART, ...options);
}

/** Parses all manifests of a text. */
export function parseManifests(text: string): readonly Manifest[] {
  const documents = parseAllDocuments(text);
  return documents.map((document) => document.toJS() as Manifest | null).filter((each) => each !== null);
}

/**
 * Checks manifests against the schemas of Kubernetes, and those of the Prometheus operator's that the chart uses.
 * Returns what is wrong, by manifest.
 */
export async function findMistakes(text: string): Promise<readonly string[]> {
  const folder = await temporaryFolder();
  await writeFile(join(folder, 'manifests.yaml'), text);
  const args = [folder, '--local-crds', join(import.meta.dirname, 'crds'), '--output', 'json'];
  const printed = run(await toolOf('kubectl-validate'), args, { maxBuffer: 64 << 20 });
  const { stdout } = await printed.catch((error: { stdout: string }) => error); // 1: there are mistakes
  const results: Record<string, readonly { readonly status: string; readonly message?: string }[]> =
    JSON.parse(stdout);
  const checked = Object.values(results).flat();
  if (checked.length === 0) throw new Error('nothing was checked');
  return checked.filter(({ status }) => status !== 'Success').map(({ message = 'refused' }) => message);
}

/** The path of a tool that is written in Go. */
async function toolOf(name: string): Promise<string> {
  return (await run(join(ROOT, `scripts/${name}.sh`))).stdout.trim();
}

/** Whether the tools are there, or can be built; in CI they have to be. */
export async function hasTools(): Promise<boolean> {
  if (process.env.CI === 'true') return true;
  const checks = [toolOf('helm'), toolOf('kubectl-validate')];
  return await Promise.all(checks).then(
    () => true,
    () => false,
  );
}
