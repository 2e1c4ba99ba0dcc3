import type { Route } from './route.ts';
import { listConditions } from './routes/conditions.ts';
import { showDashboard, showDashboardFile } from './routes/dashboard.ts';
import { drainReplica, undrainReplica } from './routes/drain.ts';
import { forgetGateway, listGateways } from './routes/gateways.ts';
import { findRecord } from './routes/history/record.ts';
import { listStatementRecords } from './routes/history/statement-records.ts';
import { showTimeline } from './routes/history/timeline.ts';
import { showUsage } from './routes/history/usage.ts';
import { describeRoutes } from './routes/openapi.ts';
import { probeReplica } from './routes/probe.ts';
import { reloadConfig } from './routes/reload.ts';
import { listReplicas, showReplica } from './routes/replicas.ts';
import { recordRolloutStep } from './routes/rollout-steps.ts';
import {
  abortRollout,
  continueRollout,
  listRollouts,
  pauseRollout,
  reportRollout,
  showRollout,
} from './routes/rollouts.ts';
import { beginShadow, endShadow } from './routes/shadow.ts';
import { createSignInLink, signIn } from './routes/sign-in.ts';
import { showStatementKey } from './routes/statement-key.ts';
import { showMetrics } from './routes/telemetry/metrics.ts';
import { showOverview } from './routes/telemetry/overview.ts';
import { listRecords } from './routes/telemetry/records.ts';
import { showStats } from './routes/telemetry/stats.ts';
import { showVerdict } from './routes/verdict.ts';

/** All routes of the admin listener. */
export const ROUTES: readonly Route[] = [
  listConditions,
  listReplicas,
  showReplica,
  drainReplica,
  undrainReplica,
  probeReplica,
  beginShadow,
  endShadow,
  showVerdict,
  listRollouts,
  showRollout,
  pauseRollout,
  continueRollout,
  abortRollout,
  reportRollout,
  recordRolloutStep,
  listGateways,
  forgetGateway,
  reloadConfig,
  createSignInLink,
  signIn,
  showStats,
  showMetrics,
  listRecords,
  findRecord,
  showUsage,
  showTimeline,
  listStatementRecords,
  showStatementKey,
  showOverview,
  showDashboard,
  showDashboardFile,
  describeRoutes(() => ROUTES),
];
