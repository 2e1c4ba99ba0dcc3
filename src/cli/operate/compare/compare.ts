import { writeFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { StartError } from '#base';
import { itemsOf, memberOf } from '#base/parsed';
import { type AdminClient, callVerdict, openAdmin, RefusedError } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { createPaint, toOneLine } from '#cli/terminal';
import { parseDuration, parsePercent, printDuration } from '#config/values';
import { printJson } from '../../print-json.ts';
import { toTimeText } from '../../tables/time-text.ts';
import { EXIT_CODES, VERDICT_STYLES } from '../verdict.ts';
import { toHtmlReport } from './html-report.ts';
import { type ComparedPairs, readPairs } from './read-pairs.ts';
import { toSideRows } from './side-rows.ts';
import { toClassTitle } from './token-classes.ts';

const LOOK_EVERY_MS = 1_000;
/** The gateway ends what is not said again for so long, so that a command that is killed leaves no shadow behind. */
const LEASE_MS = 60_000;
const RENEW_EVERY_MS = 15_000;

/**
 * `gateway compare CANDIDATE [BASELINE]`: makes the candidate a shadow for a while, compares its answers with those that
 * clients get, and writes a report. Whatever happens, the candidate is in the end what it was. Its exit codes are in
 * `EXIT_CODES`. Throws a UsageError or what a call throws.
 */
export async function compare({ args, env, stdout, stderr, signals }: Invocation): Promise<number> {
  const { values, positionals } = parseOptions(args, COMMANDS.compare.options, ['CANDIDATE', '[BASELINE]']);
  const [candidate = '', baseline = null] = positionals;
  const { shadow: share = '10%', for: length = '30m', tolerance = '1%', report, json, ...trust } = values;
  for (const [option, given] of Object.entries({ shadow: share, tolerance })) {
    const parsed = parsePercent(given);
    // Without copies it would serve nobody, and never be judged.
    if (parsed === null || (option === 'shadow' && parsed === 0))
      throw new UsageError(`option '--${option}' needs per cent such as 10%`);
  }
  const forMs = parseDuration(length);
  if (forMs === null) throw new UsageError("option '--for' needs a duration such as 10m");
  if (report !== undefined && !/\.(?:md|html)$/.test(report))
    throw new UsageError("option '--report' needs a file that ends with .md or .html");
  const admin = await openAdmin(trust, env, 'operator');
  const names = candidate.split(',');
  const { shutdown } = signals;
  /** Since when each is a shadow; undefined: perhaps it is one; null: not for this comparison any more. */
  const since = new Map<string, unknown>();
  const begin = async () => {
    const query = new URLSearchParams({ requests: share, for: printDuration(LEASE_MS) });
    for (const name of names) {
      const isFirst = !since.has(name);
      if (isFirst) since.set(name, undefined);
      const answer = await admin.call('POST', `/admin/replicas/${encodeURIComponent(name)}/shadow?${query}`);
      const warning = memberOf(answer, 'warning');
      if (warning !== undefined && isFirst) stderr.write(`${toOneLine(String(warning))}\n`);
      since.set(name, sinceOf(memberOf(answer, 'replica')));
    }
  };
  const question = { candidate, baseline, since: null, tolerance };
  const paint = createPaint(stdout, env);
  let renewedMs = performance.now();
  const endMs = renewedMs + forMs;
  try {
    await checkFree(admin, names);
    await begin();
    let found = await callVerdict([admin], question);
    let shown = '';
    // A verdict that is known does not end it: who asks for half an hour wants the figures of half an hour.
    while (!shutdown.aborted && performance.now() < endMs) {
      await sleep(LOOK_EVERY_MS, undefined, { signal: shutdown }).catch(() => undefined);
      await checkShadows(admin, since);
      if (performance.now() - renewedMs >= RENEW_EVERY_MS) {
        await begin();
        renewedMs = performance.now();
      }
      found = await callVerdict([admin], question);
      const line = toOneLine(`${candidate} ${found.verdict}: ${found.summary}`);
      if (json !== true && line !== shown && stderr.isTTY === true) stderr.write(`${line}\n`);
      shown = line;
    }
    const compared = readPairs(found.answer, { candidate, share, for: printDuration(forMs) });
    if (report !== undefined) await writeReport(report, compared);
    if (json === true) printJson(stdout, found.answer);
    else {
      const line = toOneLine(`${candidate} ${found.sentence}`);
      stdout.write(`${paint(line, VERDICT_STYLES[found.verdict])}\n`);
      stdout.write(toMarkdownReport(compared).split('\n').slice(4).join('\n'));
      if (report !== undefined) stdout.write(`\nThe report is in ${report}\n`);
    }
    return EXIT_CODES[found.verdict];
  } finally {
    const own = names.filter((name) => since.has(name) && since.get(name) !== null);
    await endShadows(admin, own, (text) => stderr.write(text));
  }
}

/** Throws a StartError if a call has made one of them a shadow already: at the end of this comparison it would serve clients. */
async function checkFree(admin: AdminClient, names: readonly string[]): Promise<void> {
  for (const replica of itemsOf(await admin.call('GET', '/admin/replicas'), 'replicas')) {
    const name = String(memberOf(replica, 'name'));
    if (!names.includes(name) || typeof sinceOf(replica) !== 'string') continue;
    const until = toTimeText(memberOf(memberOf(replica, 'shadow'), 'until'));
    throw new StartError(
      `${name} is a shadow until ${until}, by another call: wait, or end that with POST /admin/replicas/${name}/unshadow`,
    );
  }
}

const sinceOf = (replica: unknown) => memberOf(memberOf(replica, 'shadow'), 'since');

/** Throws a StartError if somebody has ended it for one of them: who drains a shadow may be about to stop it. */
async function checkShadows(admin: AdminClient, since: Map<string, unknown>): Promise<void> {
  const replicas = itemsOf(await admin.call('GET', '/admin/replicas'), 'replicas');
  for (const [name, began] of since) {
    const found = replicas.find((replica) => memberOf(replica, 'name') === name);
    if (sinceOf(found) === began) continue;
    // What goes on there now is not this comparison's.
    since.set(name, null);
    const why = memberOf(found, 'drained') === true ? 'it was drained' : 'somebody has ended that';
    throw new StartError(`${name} gets no copies for this comparison any more: ${why}. Nothing is decided`);
  }
}

/** Each is tried, whatever becomes of the others. */
async function endShadows(
  admin: AdminClient,
  names: readonly string[],
  warn: (text: string) => unknown,
): Promise<void> {
  for (const name of names) {
    try {
      await admin.call('POST', `/admin/replicas/${encodeURIComponent(name)}/unshadow`);
    } catch (error) {
      if (error instanceof RefusedError && error.code === 'replica_not_found') continue;
      if (!(error instanceof StartError)) throw error;
      warn(`${name} may stay a shadow for ${printDuration(LEASE_MS)}: ${error.message}\n`);
    }
  }
}

async function writeReport(path: string, compared: ComparedPairs): Promise<void> {
  const text = path.endsWith('.html') ? toHtmlReport(compared) : toMarkdownReport(compared);
  try {
    await writeFile(path, text);
  } catch (error) {
    throw new StartError(`the report is not written to ${path}: ${String(memberOf(error, 'code'))}`, error);
  }
}

/** The report as Markdown, for a pull request or a ticket. */
export function toMarkdownReport(compared: ComparedPairs): string {
  const { title, sentence, settings, pairs, ratios, outputs, again, tools, candidate, baseline, skipped } =
    compared;
  const lines = [
    `# ${title}`,
    '',
    `**${sentence}**`,
    '',
    `${settings}: ${pairs}.`,
    '',
    '| The shadow as a multiple of its primary | 10 % of pairs below | median | 90 % below |',
    '|---|---:|---:|---:|',
    ...ratios.map(
      ({ title: what, p10, median, p90 }) => `| ${what} | ${[p10, median, p90].map(times).join(' | ')} |`,
    ),
    '',
    '| | candidate | baseline |',
    '|---|---:|---:|',
    ...toSideRows(candidate, baseline).map(toRow),
    '',
  ];
  if (outputs.compared > 0) {
    const parted = outputs.compared - outputs.equal;
    lines.push(
      `${outputs.equal.toLocaleString('en')} of ${outputs.compared.toLocaleString('en')} outputs that should be the same each time are the same.`,
      '',
    );
    if (parted > 0) {
      lines.push(
        '| Where they part | outputs |',
        '|---|---:|',
        ...outputs.partsAfter.flatMap((count, place) =>
          count === 0 ? [] : [`| ${toClassTitle(place)} | ${count} |`],
        ),
        '',
        '| The shadow is asked once more | |',
        '|---|---:|',
        ...again.map(([what, count]) => toRow([what, String(count)])),
        '',
      );
    }
  }
  if (tools.compared > 0)
    lines.push(`${tools.same} of ${tools.compared} answers that call tools call them alike.`, '');
  if (skipped.length > 0)
    lines.push(
      `Not copied although it was their turn: ${skipped.map(([why, count]) => `${count} ${why}`).join(', ')}.`,
      '',
    );
  return lines.join('\n');
}

/** A row of a table. A bar in a cell would begin another one. */
function toRow(cells: readonly string[]): string {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
}

function times(ratio: number): string {
  return `×${ratio.toFixed(3)}`;
}
