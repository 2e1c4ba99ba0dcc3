import { open } from 'node:fs/promises';
import { StartError, toFileProblem, UnusableSettingError } from '#base';
import type { AdminClient } from '#cli/admin-client';
import { COMMANDS, parseOptions } from '#cli/arguments';
import { findConfigPath, type Invocation, readConfigFile, UsageError } from '#cli/command';
import { createPaint, tableWidthOf, toOneLine } from '#cli/terminal';
import { toShownName } from '#otel/base';
import {
  composeStatement,
  type GatewayFacts,
  loadStatementKey,
  SameRecordsError,
  type Statement,
  type StatementKey,
  signStatement,
  toMonth,
} from '#statement';
import { printJson } from '../print-json.ts';
import { toLackTexts, toStatementCsv, toStatementTable } from '../tables/statement-text.ts';
import { openHistories } from './history-gateways.ts';
import { LocalTime } from './local-time.ts';
import { readFacts, readShownKey } from './statement-facts.ts';

/**
 * `gateway statement`: states what a tenant used in a month, from the history of all gateways that are named. Throws a
 * UsageError or what a call throws: without one of the gateways there is no statement.
 */
export async function statement({ args, env, stdout, stderr }: Invocation): Promise<number> {
  const { values } = parseOptions(args, COMMANDS.statement.options);
  const { month: name = '', output, unsigned = false } = values;
  // By the name that records have.
  const tenant = toShownName(values.tenant ?? '');
  if (values.csv && values.json) throw new UsageError("options '--csv' and '--json' exclude each other");
  if (tenant === '') throw new UsageError("option '--tenant' is missing");
  const timeZone = values['time-zone'] ?? new Intl.DateTimeFormat().resolvedOptions().timeZone;
  const month = readMonth(name, timeZone);
  const isWhole = output !== undefined || values.json === true;
  const key = isWhole && !unsigned ? await findKey(values, env) : null;
  const clients = await openHistories(values, { env, stderr });
  if (key !== null) for (const client of clients) await refuseOtherKey(client, key);
  const madeAt = new Date().toISOString();
  if (madeAt <= month.since) throw new UsageError("option '--month' needs a month that has begun");
  const facts: GatewayFacts[] = [];
  for (const client of clients) facts.push(await readFacts(client, { tenant, ...month }));
  const body = compose(() => composeStatement(facts, { tenant, month: name, timeZone, madeAt }, month));
  const whole = key === null ? body : signStatement(body, key);
  const time = new LocalTime(timeZone);
  for (const text of toLackTexts(whole, time)) stderr.write(`gateway: ${toOneLine(text)}\n`);
  if (facts.every(({ records, unnumbered }) => records.length + unnumbered === 0))
    stderr.write('gateway: no request of this tenant and month is kept: check the name\n');
  if (output !== undefined) await writeStatement(output, whole);
  if (values.json) printJson(stdout, whole);
  else if (values.csv) stdout.write(toStatementCsv(whole));
  else
    stdout.write(
      toStatementTable(whole, time, { paint: createPaint(stdout, env), width: tableWidthOf(stdout) }),
    );
  return 0;
}

function readMonth(month: string, timeZone: string) {
  try {
    const read = toMonth(month, timeZone);
    if (read !== null) return read;
  } catch {
    throw new UsageError("option '--time-zone' needs a time zone such as Europe/Berlin");
  }
  throw new UsageError("option '--month' needs a month such as 2026-11");
}

interface KeyOptions {
  readonly 'sign-key'?: string;
  readonly config?: string;
}

/** Throws a UsageError or an UnusableSettingError. */
async function findKey(options: KeyOptions, env: Invocation['env']): Promise<StatementKey> {
  const found = await findKeyFile(options, env);
  if (found === null) {
    throw new UsageError(
      "no key to sign with: give --sign-key FILE, which 'gateway key create --statement' makes, or --unsigned for a draft",
    );
  }
  const key = await loadStatementKey(found.path, found.source);
  if (key.sign === null) throw new UnusableSettingError(`${found.source} is a public key, which cannot sign`);
  return key;
}

async function findKeyFile({ 'sign-key': path, config }: KeyOptions, env: Invocation['env']) {
  if (path !== undefined) return { path, source: `--sign-key ${toOneLine(path)}` };
  const named = env.SVC_STATEMENT_KEY_FILE ?? '';
  if (named !== '') return { path: named, source: 'the file that SVC_STATEMENT_KEY_FILE names' };
  const configPath = findConfigPath(config, env);
  if (configPath === null) return null;
  const { statementKey } = (await readConfigFile(configPath, env)).config;
  return statementKey === null ? null : { path: statementKey, source: `statement_key: ${statementKey}` };
}

/** A statement that is signed with another key than customers are told is of no use to them. */
async function refuseOtherKey(client: AdminClient, { publicKey }: StatementKey): Promise<void> {
  const shown = await readShownKey(client);
  if (shown === null || shown === publicKey) return;
  throw new StartError(
    `the key is another one than ${client.baseUrl} shows at /admin/statement-key: ${publicKey}, not ${toOneLine(shown)}`,
  );
}

function compose(work: () => ReturnType<typeof composeStatement>) {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof SameRecordsError)) throw error;
    throw new StartError(
      'two of the gateways have the same records: does one have a copy of the history of the other?',
      error,
    );
  }
}

async function writeStatement(path: string, statement: Statement): Promise<void> {
  try {
    await using file = await open(path, 'w');
    await file.writeFile(`${JSON.stringify(statement, null, 1)}\n`);
  } catch (error) {
    throw new UnusableSettingError(`cannot write ${toOneLine(path)}: ${toFileProblem(error)}`, error);
  }
}
