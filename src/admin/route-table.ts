import type { Route } from './route.ts';
import { createDashboardRoutes } from './routes/dashboard.ts';
import { drainReplica, undrainReplica } from './routes/drain.ts';
import { forgetGateway, listGateways } from './routes/gateways.ts';
import { showMetrics } from './routes/metrics.ts';
import { listObservations } from './routes/observations.ts';
import { describeRoutes } from './routes/openapi.ts';
import { showOverview } from './routes/overview.ts';
import { probeReplica } from './routes/probe.ts';
import { listRecords } from './routes/records.ts';
import { reloadConfig } from './routes/reload.ts';
import { listReplicas, showReplica } from './routes/replicas.ts';
import { recordRolloutStep } from './routes/rollout-steps.ts';
import { showStats } from './routes/stats.ts';

/** Creates all routes of the admin listener. Reads the files of the dashboard. */
export function createRoutes(): readonly Route[] {
  const routes: readonly Route[] = [
    listReplicas,
    showReplica,
    drainReplica,
    undrainReplica,
    probeReplica,
    recordRolloutStep,
    listGateways,
    forgetGateway,
    reloadConfig,
    showStats,
    showMetrics,
    listRecords,
    listObservations,
    showOverview,
    ...createDashboardRoutes(),
    describeRoutes(() => routes),
  ];
  return routes;
}
