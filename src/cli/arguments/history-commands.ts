import type { CommandSpec } from './command-spec.ts';
import { SEVERAL_GATEWAYS, SPAN_OPTIONS } from './shared-options.ts';

const LOOK = 'Look at a running gateway';

const DIMENSIONS = ['tenant', 'client', 'model', 'replica', 'endpoint'] as const;

/** The commands that ask the history of gateways. */
export const HISTORY_COMMANDS = {
  usage: {
    group: LOOK,
    summary: 'show who used how much: requests, tokens, GPU time, cost',
    details: [
      'It sums up the requests that arrived in a span of time, from the history (docs/history.md). Standard error says what is missing.',
      'Each gateway knows only its own requests: for several, repeat --admin, and they are summed; if one does not answer, there is no sum. Quantiles cannot be summed: they are shown for one gateway only.',
      "--csv and --json have all figures, with times in UTC. In --csv, ' precedes a name that a spreadsheet would take for a formula.",
    ],
    options: {
      ...SEVERAL_GATEWAYS,
      ...SPAN_OPTIONS,
      by: {
        type: 'string',
        value: 'NAMES',
        help: `a row for each of these, separated by commas: ${DIMENSIONS.join(', ')} (default tenant)`,
        words: DIMENSIONS,
      },
      step: { type: 'string', value: 'STEP', help: 'divide the time into steps such as 5m, 1h or 1d' },
      tenant: { type: 'string', value: 'NAME', help: 'only requests of this tenant' },
      client: { type: 'string', value: 'NAME', help: 'only requests of this client' },
      model: { type: 'string', value: 'NAME', help: 'only requests for this model' },
      replica: { type: 'string', value: 'NAME', help: 'only requests to this replica', words: 'replica' },
      endpoint: { type: 'string', value: 'PATH', help: 'only requests to this path' },
      csv: { type: 'boolean', help: 'print comma-separated values' },
    },
    examples: [
      { line: 'gateway usage --by tenant,model --since today', does: 'shows who used what since midnight' },
      {
        line: 'gateway usage --admin http://gw-1:9090 --admin http://gw-2:9090 --since 30d --csv >usage.csv',
        does: 'sums two gateways',
      },
      {
        line: 'gateway usage --by model --step 1h --since yesterday --until today',
        does: 'shows each hour of a day',
      },
    ],
  },
  statement: {
    group: LOOK,
    summary: 'state what a tenant used in a month, signed, so that records can prove it',
    details: [
      'It comes from the history of the gateways: requests, tokens, GPU seconds and cost by day and model, the numbers of the records, and what is missing (docs/statements.md), which standard error says too. Repeat --admin for every gateway that the tenant uses.',
      'It prints a table. With --output or --json it prints the whole statement, signed with the key in --sign-key, SVC_STATEMENT_KEY_FILE or statement_key of the configuration file. gateway verify --statement proves it.',
    ],
    options: {
      ...SEVERAL_GATEWAYS,
      tenant: { type: 'string', value: 'NAME', help: 'the tenant' },
      month: { type: 'string', value: 'MONTH', help: 'the month, such as 2026-11' },
      'time-zone': {
        type: 'string',
        value: 'ZONE',
        help: 'the time zone of the days, such as Europe/Berlin (default: that of this machine)',
      },
      'sign-key': { type: 'string', value: 'FILE', help: 'the key: gateway key create --statement makes it' },
      unsigned: { type: 'boolean', help: 'do not sign it: a draft, which nobody can prove' },
      output: { type: 'string', value: 'FILE', help: 'write the statement to FILE' },
      csv: {
        type: 'boolean',
        help: 'print the table as comma-separated values, with all digits',
      },
    },
    examples: [
      {
        line: 'gateway statement --tenant acme --month 2026-11 --time-zone Europe/Berlin',
        does: 'shows what acme used',
      },
      {
        line: 'gateway statement --tenant acme --month 2026-11 --sign-key key.pem --output acme.json',
        does: 'writes a signed statement',
      },
      {
        line: 'gateway statement --tenant acme --month 2026-11 --admin http://gw-2:9090 --csv >acme.csv',
        does: 'prints CSV from one of several gateways',
      },
    ],
  },
  timeline: {
    group: LOOK,
    summary: 'show what happened: conditions, drains, rollouts, reloads, restarts',
    details: [
      'The oldest comes first. An event is shown if any part of it falls into the span of time. For several gateways, repeat --admin: each event has its gateway.',
    ],
    options: {
      ...SEVERAL_GATEWAYS,
      ...SPAN_OPTIONS,
      limit: {
        type: 'string',
        short: 'n',
        value: 'N',
        help: 'the latest N events, from 1 to 9999 (default 500)',
      },
    },
    examples: [
      { line: 'gateway timeline --since 12h', does: 'shows what happened last night' },
      {
        line: 'gateway timeline --since 7d --json | jq \'.events[] | select(.kind == "rollout")\'',
        does: 'prints the steps of rollouts',
      },
    ],
  },
} as const satisfies Readonly<Record<string, CommandSpec>>;
