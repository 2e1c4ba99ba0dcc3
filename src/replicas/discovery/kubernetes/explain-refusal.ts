import type { ApiError } from './api-call.ts';

/** What the service account needs to follow a Service. */
export const WATCH_RULE =
  'apiGroups [discovery.k8s.io], resources [endpointslices], verbs [get, list, watch]';

/** What it needs for readiness gates. */
export const STATUS_RULE = 'apiGroups [""], resources [pods/status], verbs [patch]';

/** What is to be done about a call that was refused. `rule`: what it needs of a Role. Null: it was not refused. */
export function explainRefusal({ status }: Pick<ApiError, 'status'>, rule: string): string | null {
  if (status === 401) return 'the API server does not accept the token of the service account';
  return status === 403 ? `the service account needs the rule ${rule} in the Role of the namespace` : null;
}
