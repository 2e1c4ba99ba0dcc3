import { hash, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { toFileProblem, UnusableSettingError } from '#base';
import { COMMANDS, parseArguments, parseOptions } from '#cli/arguments';
import { type Invocation, UsageError } from '#cli/command';
import { toOneLine } from '#cli/terminal';
import { createClientEntry } from '#config';
import { createStatementKey } from '#statement';

const KEY_BYTES = 32;

/**
 * `gateway key create NAME`: makes an API key. Prints the key, and its entry in `clients`. Keeps neither. With `--statement`
 * it makes the key of statements.
 */
export async function key(invocation: Invocation): Promise<number> {
  const { args, stdout, stderr } = invocation;
  if (parseArguments(args, COMMANDS.key.options).values.statement) return await statementKey(invocation);
  const { values, positionals } = parseOptions(args, COMMANDS.key.options, ['create', 'NAME']);
  if (values.output !== undefined) throw new UsageError("option '--output' needs '--statement'");
  const [action, name = ''] = positionals;
  if (action !== 'create') throw new UsageError("the only action is 'create': gateway key create NAME");
  if (!/^[A-Za-z0-9._~-]{1,128}$/.test(name)) {
    throw new UsageError('NAME consists of letters, digits and . _ ~ -, at most 128');
  }
  const { tenant, feature, model, expires, json } = values;
  const newKey = `sk-${randomBytes(KEY_BYTES).toString('base64url')}`;
  const created = createClientEntry({
    name,
    key_sha256: hash('sha256', newKey),
    tenant,
    feature,
    models: model,
    expires: expires === undefined ? undefined : toTime(expires),
    max_inflight: values['max-inflight'],
    requests_per_minute: values['requests-per-minute'],
    tokens_per_minute: values['tokens-per-minute'],
  });
  if ('expected' in created) {
    const option = created.key === 'models' ? 'model' : created.key.replaceAll('_', '-');
    throw new UsageError(`option '--${option}' needs ${created.expected}`);
  }
  const { entry, yaml } = created;
  if (json) {
    stdout.write(`${JSON.stringify({ key: newKey, client: entry }, null, 2)}\n`);
    return 0;
  }
  stderr.write('The key is shown once. Give it to the client, and put the entry into the configuration.\n');
  stdout.write(`${newKey}\n\n${yaml}`);
  return 0;
}

const STATEMENT_KEY_FILE = 'statement-key.pem';

/** Makes the key of statements. It is written to a file that only its owner can read, and never printed. */
async function statementKey({ args, stdout, stderr }: Invocation): Promise<number> {
  const { values, positionals } = parseOptions(args, COMMANDS.key.options, ['create']);
  const { statement: _, output = STATEMENT_KEY_FILE, json, ...others } = values;
  const [other] = Object.keys(others);
  if (positionals[0] !== 'create') throw new UsageError("the only action is 'create'");
  if (other !== undefined)
    throw new UsageError(`option '--${other}' is for keys of clients, not for '--statement'`);
  const { pem, publicKey } = createStatementKey();
  try {
    // A key that is there may be the one that customers know.
    await writeFile(output, pem, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    throw new UnusableSettingError(`cannot write ${toOneLine(output)}: ${toFileProblem(error)}`, error);
  }
  if (json) {
    stdout.write(`${JSON.stringify({ file: output, public_key: publicKey }, null, 2)}\n`);
    return 0;
  }
  stderr.write(
    `The key is in ${toOneLine(output)}: keep it secret, and keep a copy. Give this public key to customers:\n`,
  );
  stdout.write(`${publicKey}\n`);
  return 0;
}

/** A day such as 2027-01-31, or a time as in RFC 3339. */
function toTime(text: string): string {
  const isMeant = /^\d{4}-\d{2}-\d{2}(T.+)?$/.test(text) && !Number.isNaN(Date.parse(text));
  if (!isMeant)
    throw new UsageError(
      "option '--expires' needs a day such as 2027-01-31, or a time such as 2027-01-31T12:00:00Z",
    );
  if (Date.parse(text) <= Date.now())
    throw new UsageError("option '--expires' needs a time that is not over");
  return new Date(text).toISOString().replace('.000Z', 'Z');
}
