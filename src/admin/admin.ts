/*
 * The admin API and its page: who may call what, the schemas, the routes, the listener.
 *
 * It never imports the proxy: it must answer when the data plane does not.
 * Begin with handle-admin.ts and routes/, one file for each call or two: what it refuses, and what it does. access/
 * finds out whose token a call has. dashboard/page/ is the page; its figures come from dashboard/traffic/.
 */

export { AdminAccess } from './access/admin-access.ts';
export { FailedTokens } from './access/failed-tokens.ts';
export { createHostCheck } from './access/host-check.ts';
export type { ReloadOutcome } from './admin-collaborators.ts';
export { startLiveFigures } from './dashboard/traffic/live-figures.ts';
export { IdleWatcher } from './drains/idle-watcher.ts';
export { createAdminHandler } from './handle-admin.ts';
export { type ClientAnswer, createClientUsage, type UsageClient } from './history/client-usage.ts';
export { AdminListener } from './listener/admin-listener.ts';
export { roundTo3 } from './shown-record.ts';
