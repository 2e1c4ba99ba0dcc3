import type { Registry, RegistryMetric } from './registry.ts';

/** What the names of all attributes of a record begin with. */
export const RECORD_PREFIX = 'gateway.';

/** The ids of the groups in otel/record/registry/ that code and tables are made from. */
export const GROUP = {
  record: 'registry.gateway.beyond',
  requestSpan: 'span.gateway.request',
  genAi: 'registry.gateway.gen_ai',
  genAiLatest: 'registry.gateway.gen_ai_latest',
  operationSpan: 'span.gateway.operation',
  attemptSpan: 'span.gateway.attempt',
  ledgerSpan: 'span.gateway.ledger',
  adminActionSpan: 'span.gateway.admin_action',
  rolloutStepSpan: 'span.gateway.rollout_step',
  shadowSpan: 'span.gateway.shadow',
  attempt: 'registry.gateway.attempt_metrics',
  discovery: 'registry.gateway.discovery',
  condition: 'registry.gateway.condition',
  copy: 'registry.gateway.copy',
  verdict: 'registry.gateway.verdict',
  failedAttemptEvent: 'event.gateway.attempt_failed',
} as const;

/** What the ids of the groups of dialects begin with. */
const DIALECT_PREFIX = 'registry.dialect.';

/** The dialects of backends, each with the id of its group, in the order of the registry. */
export function dialectsOf(registry: Registry): readonly { readonly name: string; readonly id: string }[] {
  return [...registry.groups.keys()]
    .filter((id) => id.startsWith(DIALECT_PREFIX))
    .map((id) => ({ id, name: id.slice(DIALECT_PREFIX.length) }));
}

/** The field of a record by the name of its attribute: a dot in the name is an underscore in the field. */
export const toField = (name: string): string => name.slice(RECORD_PREFIX.length).replaceAll('.', '_');

/** The metrics with the ids and briefs of their groups, in the order of the registry. */
export function metricsOf(
  registry: Registry,
): readonly (RegistryMetric & { readonly id: string; readonly brief: string })[] {
  return [...registry.groups.values()].flatMap(({ id, brief, metric }) =>
    metric === undefined ? [] : [{ id, brief, ...metric }],
  );
}
