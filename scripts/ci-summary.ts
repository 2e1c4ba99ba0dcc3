import { writeFileSync } from 'node:fs';
import type { Reporter, SerializedError, TestCase, TestModule } from 'vitest/node';

/** The file of the summary. .ci/run prints it last. */
const file = process.env.CI_SUMMARY ?? 'ci-summary.txt';

/** Returns one line per skipped test with its reason, then one line `N passed, N failed[, N skipped]`. */
function summarise(modules: readonly TestModule[], errors: readonly SerializedError[]): string {
  const tests = modules.flatMap((module) => [...module.children.allTests()]);
  const inState = (state: string) => tests.filter((test) => test.result().state === state);
  const skipped = inState('skipped');
  // A file that does not load and an unhandled error have no failed test. Each counts as one.
  const failedModules = modules.filter((module) => module.errors().length > 0);
  // A test that did not finish because its worker crashed has failed too.
  const failed = inState('failed').length + inState('pending').length + failedModules.length + errors.length;
  const counts = [`${inState('passed').length} passed`, `${failed} failed`];
  if (skipped.length > 0) counts.push(`${skipped.length} skipped`);
  return [...skipped.map(toSkipLine), counts.join(', ')].join('\n');
}

function toSkipLine(test: TestCase): string {
  const result = test.result();
  const reason = (result.state === 'skipped' && result.note) || 'no reason given';
  return `skipped: ${test.fullName}: ${reason}`;
}

/** A vitest reporter that writes the summary for CI. Vitest's JSON report omits why a test was skipped. */
export default class CiSummary implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], errors: readonly SerializedError[]): void {
    writeFileSync(file, `${summarise(modules, errors)}\n`);
  }
}
