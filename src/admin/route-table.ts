import type { Route } from './route.ts';
import { listConditions } from './routes/conditions.ts';
import { createDashboardRoutes } from './routes/dashboard.ts';
import { drainReplica, undrainReplica } from './routes/drain.ts';
import { forgetGateway, listGateways } from './routes/gateways.ts';
import { describeRoutes } from './routes/openapi.ts';
import { probeReplica } from './routes/probe.ts';
import { reloadConfig } from './routes/reload.ts';
import { listReplicas, showReplica } from './routes/replicas.ts';
import { recordRolloutStep } from './routes/rollout-steps.ts';
import { showMetrics } from './routes/telemetry/metrics.ts';
import { showOverview } from './routes/telemetry/overview.ts';
import { listRecords } from './routes/telemetry/records.ts';
import { showStats } from './routes/telemetry/stats.ts';
import { showVerdict } from './routes/verdict.ts';

/** Creates all routes of the admin listener. Reads the files of the dashboard. */
export function createRoutes(): readonly Route[] {
  const routes: readonly Route[] = [
    listConditions,
    listReplicas,
    showReplica,
    drainReplica,
    undrainReplica,
    probeReplica,
    showVerdict,
    recordRolloutStep,
    listGateways,
    forgetGateway,
    reloadConfig,
    showStats,
    showMetrics,
    listRecords,
    showOverview,
    ...createDashboardRoutes(),
    describeRoutes(() => routes),
  ];
  return routes;
}
