import { itemsOf, memberOf } from '#base/parsed';
import { openAdmin, RefusedError } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import type { Invocation } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import { printJson } from '../print-json.ts';

/**
 * `gateway reload`: makes a running gateway read its configuration again, and prints what has changed. Returns 2 if the
 * gateway refuses the file; its problems are printed on standard error, one per line.
 */
export async function reload({ args, env, stdout, stderr }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.reload.options);
  const client = await openAdmin(values, env, 'admin');
  let answer: unknown;
  try {
    answer = await client.call('POST', '/admin/reload');
  } catch (error) {
    if (!(error instanceof RefusedError) || error.code !== 'invalid_config') throw error;
    const problems = error.reason.split('\n').map((problem) => `  ${toOneLine(problem)}\n`);
    const what = error.param === undefined ? 'the configuration' : toOneLine(error.param);
    stderr.write(
      `gateway: ${what} was refused: the former configuration stays in effect\n${problems.join('')}`,
    );
    return 2;
  }
  if (values.json) printJson(stdout, answer);
  else stdout.write(toReloadText(answer));
  const needsRestart = toWords(answer, 'needs_restart');
  if (needsRestart !== '') stderr.write(`gateway: warning: these keys need a restart: ${needsRestart}\n`);
  return 0;
}

function toReloadText(answer: unknown): string {
  const replicas = memberOf(answer, 'replicas');
  const rows = [
    ['changed', toWords(answer, 'changed')],
    ['replicas added', toWords(replicas, 'added')],
    ['replicas changed', toWords(replicas, 'changed')],
    ['replicas removed', toWords(replicas, 'removed')],
  ].filter(([, words]) => words !== '');
  if (rows.length === 0) return 'reloaded: nothing has changed\n';
  return `reloaded\n${rows.map(([what = '', words]) => `  ${`${what}:`.padEnd(18)}${words}\n`).join('')}`;
}

function toWords(answer: unknown, key: string): string {
  return itemsOf(answer, key)
    .map((word) => toOneLine(String(word)))
    .join(', ');
}
