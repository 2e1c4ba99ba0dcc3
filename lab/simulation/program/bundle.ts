import { builtinModules } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Plugin, rolldown } from 'rolldown';
import { SHARED_PACKAGES } from '../platform/modules.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Files that are the code of a thread from their first line on. */
const THREAD_ENTRIES = [
  'src/gateway/serving/workers/worker-entry.ts',
  'src/proxy/request/inspection/body-worker.ts',
];

/** The files that threads start with. */
const ENTRIES = ['src/gateway/create-gateway.ts', ...THREAD_ENTRIES];

/** Modules that keep something, and how they forget it before another thread uses them. */
const RESETS: readonly (readonly [file: RegExp, forget: string])[] = [
  [
    /^node_modules\/undici\/lib\/util\/timers\.js$/,
    'fastNow = 0; fastNowTimeout = undefined; fastTimers.length = 0;',
  ],
  [
    /^node_modules\/@opentelemetry\/.+\/(Exporter|MetricReader|SpanProcessor|LogRecordProcessor)Metrics\.mjs$/,
    'componentCounter.clear();',
  ],
  // Made by chance.
  [/^src\/replicas\/drains\/drain-file\.ts$/, 'DAMAGED_DRAIN.version = timestampOf(null);'],
];

/** A change of the sources: a fault that the simulation must find. */
export interface SourcePatch {
  /** From the root of the repository. */
  readonly file: string;
  /** What stands there exactly once. */
  readonly from: string;
  readonly to: string;
}

/** Bundles the sources of the gateway, with a patch if there is one: the scripts of a `Program`. */
export async function bundleGateway(patch: SourcePatch | null): Promise<Map<string, string>> {
  const scripts = new Map<string, string>();
  const sources = new Set<string>();
  for (const entry of ENTRIES) {
    const bundle = await rolldown({
      input: join(ROOT, entry),
      cwd: ROOT,
      platform: 'node',
      external: isExternal,
      plugins: [createSourcePlugin(patch, (file) => sources.add(file))],
    });
    const { output } = await bundle.generate({ format: 'esm', codeSplitting: false });
    await bundle.close();
    scripts.set(basename(entry, '.ts'), toFunctionBody(output[0].code));
  }
  for (const [file] of RESETS) {
    if (![...sources].some((source) => file.test(source))) throw new Error(`no source is like ${file}`);
  }
  return scripts;
}

/**
 * Sources that are the same for all threads: the schema of the configuration, and the table of Redis's commands. They have
 * no effects, no time and no state, and are slow to build.
 */
const SHARED_SOURCES: readonly RegExp[] = [
  /^src\/config\/(schema|schema\/[a-z-]+|shown-value)\.ts$/,
  /^node_modules\/@redis\/client\/dist\/lib\/commands$/,
];

/** Whether a file is shared; one with a patch is not. */
function isShared(path: string, patch: SourcePatch | null): boolean {
  const file = relative(ROOT, path);
  return file !== patch?.file && SHARED_SOURCES.some((pattern) => pattern.test(file));
}

function isExternal(id: string): boolean {
  return id.startsWith('node:') || builtinModules.includes(id) || SHARED_PACKAGES.includes(id);
}

/**
 * The files that are changed. Without it and the other filters, rolldown hands over all that it reads, which takes a third of
 * the CPU time.
 */
const TRANSFORMED = [/^(src|otel)\//, ...RESETS.map(([file]) => file)].map(
  ({ source }) => new RegExp(`^${RegExp.escape(ROOT)}/${source.slice(1)}`),
);

/** Loads only what is used of undici, writes down where each source is, and applies the patch. */
function createSourcePlugin(patch: SourcePatch | null, onSource: (file: string) => void): Plugin {
  const undici = join(ROOT, 'node_modules/undici/lib');
  return {
    name: 'sources',
    resolveId: {
      filter: { id: /^undici$|^\./ },
      handler(id, importer) {
        if (id === 'undici') return `${undici}/simulated.mjs`;
        const path = importer !== undefined ? join(dirname(importer), id) : id;
        return isShared(path, patch) ? { id: path, external: 'absolute' } : null;
      },
    },
    load: {
      filter: { id: /\/simulated\.mjs$/ },
      handler: () => `export { default as Client } from '${undici}/dispatcher/client.js';
        export { default as Pool } from '${undici}/dispatcher/pool.js';
        export { default as buildConnector } from '${undici}/core/connect.js';`,
    },
    transform: {
      filter: { id: TRANSFORMED },
      handler(code, id) {
        onSource(relative(ROOT, id));
        const [, forget] = RESETS.find(([pattern]) => pattern.test(relative(ROOT, id))) ?? [];
        const reset = forget === undefined ? '' : `\nonReset(() => { ${forget} });`;
        if (!id.startsWith(`${ROOT}/src/`) && !id.startsWith(`${ROOT}/otel/`)) return code + reset;
        const patched = patch !== null && id === join(ROOT, patch.file) ? applyPatch(code, patch) : code;
        const text = THREAD_ENTRIES.includes(relative(ROOT, id)) ? toStart(patched) : patched + reset;
        // A room of the gateway that is imported only when it is needed is in the bundle.
        return text
          .replaceAll('import.meta.dirname', JSON.stringify(dirname(id)))
          .replaceAll('import.meta.filename', JSON.stringify(id))
          .replaceAll('import.meta.resolve', 'resolveToUrl')
          .replaceAll(/\bimport\((?!'#)/g, 'importModule(')
          .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(id).href))
          .replaceAll('import.meta', toMeta(id));
      },
    },
  };
}

/** Turns a file that is the code of a thread into a module whose `start` runs it: imports stay where they are. */
function toStart(code: string): string {
  const [imports = ''] = /^(import [^;]+;.*\n)+/.exec(code) ?? [];
  const body = code.slice(imports.length).replaceAll(/^export /gm, '');
  return `${imports}export function start() {
    const { parentPort, workerData } = currentWorkerThreads();
    ${body}
  }`;
}

/** `import.meta` itself, where it is handed on. */
function toMeta(id: string): string {
  const meta = { url: pathToFileURL(id).href, filename: id, dirname: dirname(id) };
  return `(${JSON.stringify(meta)})`;
}

function applyPatch(code: string, { file, from, to }: SourcePatch): string {
  const count = code.split(from).length - 1;
  if (count !== 1) throw new Error(`${file} has ${count} times: ${from}`);
  return code.replace(from, () => to);
}

/** What stands for the parts of the language that only modules have. */
const PROLOGUE = `const importModule = async (name) => require(name);
const currentWorkerThreads = () => require('node:worker_threads');
const resolveToUrl = (name) => require('node:url').pathToFileURL(require.resolve(name)).href;`;

const IMPORT = /^import (.+) from "([^"]+)";$/gm;
const BARE_IMPORT = /^import "([^"]+)";$/gm;
const EXPORT = /^export \{ ?(.*?) ?\};$/gm;

/** Turns a module without other modules into the body of a function with `require` and `exports`. */
function toFunctionBody(code: string): string {
  const body = code
    .replace(IMPORT, (_all, names: string, module: string) => toRequire(names, module))
    .replace(BARE_IMPORT, (_all, module: string) => `require(${JSON.stringify(module)});`)
    .replace(EXPORT, (_all, names: string) =>
      names
        .split(',')
        .map((each) => each.trim().split(' as '))
        .map(([local, name = local]) => (local ? `exports.${name} = ${local};` : ''))
        .join('\n'),
    )
    .replaceAll(/\bimport\(/g, 'importModule(')
    .replaceAll('import.meta.url', JSON.stringify(pathToFileURL(ROOT).href));
  return `${PROLOGUE}\n${body}`;
}

function toRequire(names: string, module: string): string {
  const required = `require(${JSON.stringify(module)})`;
  const namespace = /^\* as (\S+)$/.exec(names)?.[1];
  if (namespace !== undefined) return `const ${namespace} = ${required};`;
  const [, own, , braces] = /^([^{\s,]+)?(, )?(\{.*\})?$/.exec(names) ?? [];
  const lines: string[] = [];
  // The default of Node's own modules is the module.
  if (own !== undefined) lines.push(`const ${own} = ${required};`);
  if (braces !== undefined) lines.push(`const ${braces.replaceAll(' as ', ': ')} = ${required};`);
  return lines.join('\n');
}
