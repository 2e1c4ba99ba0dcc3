import type { OptionSpec } from './command-spec.ts';

/** The option of every command that reads a configuration file. */
export const CONFIG_OPTION = {
  config: {
    type: 'string',
    short: 'c',
    value: 'FILE',
    help: 'configuration file (default: SVC_CONFIG); -config works too',
  },
} as const satisfies Readonly<Record<string, OptionSpec>>;

/** The option of every command whose output can be JSON. */
export const JSON_OPTION = {
  json: { type: 'boolean', help: 'print JSON' },
} as const satisfies Readonly<Record<string, OptionSpec>>;

/** The options of every command that connects to a gateway. */
export const CERTIFICATE_OPTIONS = {
  ca: {
    type: 'string',
    value: 'FILE',
    help: 'PEM file: the authorities of an https:// gateway (default: those of Node)',
  },
  cert: { type: 'string', value: 'FILE', help: 'PEM file: a client certificate for the gateway' },
  key: { type: 'string', value: 'FILE', help: 'PEM file: the key of --cert' },
} as const satisfies Readonly<Record<string, OptionSpec>>;

/** The options of every command that calls the admin API. */
export const ADMIN_OPTIONS = {
  ...CONFIG_OPTION,
  admin: {
    type: 'string',
    value: 'URL',
    help: 'the admin API (default: gateway.admin_listen of the configuration file)',
  },
  ...CERTIFICATE_OPTIONS,
  ...JSON_OPTION,
} as const satisfies Readonly<Record<string, OptionSpec>>;

/** The options of a command that asks several gateways. */
export const SEVERAL_GATEWAYS = {
  ...ADMIN_OPTIONS,
  admin: {
    ...ADMIN_OPTIONS.admin,
    multiple: true,
    help: 'an admin API; may be repeated (default: gateway.admin_listen of the configuration file)',
  },
} as const satisfies Readonly<Record<string, OptionSpec>>;

/** The options that `gateway drain` and `gateway undrain` have in common. */
export const DRAIN_OPTIONS = {
  ...ADMIN_OPTIONS,
  reason: { type: 'string', value: 'TEXT', help: 'why; kept with the replica, in the log and in a span' },
  wait: { type: 'boolean', help: 'wait for the replica, and repeat calls that get no answer' },
  timeout: {
    type: 'string',
    value: 'DURATION',
    help: 'how long --wait waits (default 10m for drain, 2m for undrain)',
  },
} as const satisfies Readonly<Record<string, OptionSpec>>;

/** The options of a span of the history. */
export const SPAN_OPTIONS = {
  since: {
    type: 'string',
    value: 'TIME',
    help: 'the beginning: 2026-01-31T12:00:00Z, a date, how long ago (2h, 7d), today, or yesterday',
  },
  until: {
    type: 'string',
    value: 'TIME',
    help: 'the end, not included, in the same forms (default: now)',
  },
  'time-zone': {
    type: 'string',
    value: 'ZONE',
    help: 'the time zone of dates and tables, such as Europe/Berlin (default: that of this machine)',
  },
} as const satisfies Readonly<Record<string, OptionSpec>>;
