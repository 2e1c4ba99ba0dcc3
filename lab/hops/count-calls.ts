import { Session } from 'node:inspector';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Calls } from './calls.ts';

/*
 * Loaded into the gateway with `node --import`, before its first line: counts calls, and tells them by message when it is
 * asked by one.
 */

/** What the gateway's process tells of a function, as in the DevTools protocol. */
interface ScriptCoverage {
  readonly url: string;
  readonly functions: readonly {
    readonly functionName: string;
    readonly ranges: readonly { readonly startOffset: number; readonly count: number }[];
  }[];
}

const ROOT = process.cwd();

const session = new Session();
session.connect();
session.post('Profiler.enable');
session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
process.on('message', () => {
  session.post('Profiler.takePreciseCoverage', (error, coverage) => {
    if (error !== null) throw error;
    process.send?.(toCalls(coverage.result));
  });
});

function toCalls(scripts: readonly ScriptCoverage[]): Calls {
  const calls: Record<string, string[]> = {};
  for (const { url, functions } of scripts) {
    if (!url.startsWith('file:')) continue;
    const file = relative(ROOT, fileURLToPath(url));
    if (!/^(?:src|otel)\//.test(file)) continue;
    for (const { functionName, ranges } of functions) {
      const [range] = ranges;
      if (range === undefined || range.count === 0) continue;
      // The module itself begins at 0. V8 makes one function of a class's fields, beside its constructor.
      if (range.startOffset === 0 || functionName.startsWith('<')) continue;
      calls[file] ??= [];
      calls[file].push(`${functionName || '(anonymous)'}@${range.startOffset}`);
    }
  }
  return calls;
}
