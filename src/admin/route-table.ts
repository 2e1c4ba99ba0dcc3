import type { Route } from './route.ts';
import { showDashboard, showDashboardFile } from './routes/dashboard.ts';
import { drainReplica, undrainReplica } from './routes/drain.ts';
import { forgetGateway, listGateways } from './routes/gateways.ts';
import { showMetrics } from './routes/metrics.ts';
import { describeRoutes } from './routes/openapi.ts';
import { showOverview } from './routes/overview.ts';
import { listRecords } from './routes/records.ts';
import { reloadConfig } from './routes/reload.ts';
import { listReplicas, showReplica } from './routes/replicas.ts';
import { showStats } from './routes/stats.ts';

/** All routes of the admin listener. */
export const ROUTES: readonly Route[] = [
  listReplicas,
  showReplica,
  drainReplica,
  undrainReplica,
  listGateways,
  forgetGateway,
  reloadConfig,
  showStats,
  showMetrics,
  listRecords,
  showOverview,
  showDashboard,
  showDashboardFile,
  describeRoutes(() => ROUTES),
];
