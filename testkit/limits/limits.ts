import type { LimitGroup } from './limit.ts';
import { ADMIN } from './rows/admin.ts';
import { CLIENTS } from './rows/clients.ts';
import { CONFIGURATION } from './rows/configuration.ts';
import { EXPORT } from './rows/export.ts';
import { FORMS } from './rows/forms.ts';
import { RECORDS } from './rows/records.ts';
import { REPLICAS } from './rows/replicas.ts';
import { REQUESTS } from './rows/requests.ts';
import { SOURCES } from './rows/sources.ts';

/** All limits, by what they are about. */
export const LIMITS: readonly LimitGroup[] = [
  { group: 'Requests of clients', limits: [...REQUESTS, ...FORMS] },
  { group: 'API keys and tokens', limits: CLIENTS },
  { group: 'Replicas', limits: REPLICAS },
  { group: 'Records', limits: RECORDS },
  { group: 'Export, files of records, metrics', limits: EXPORT },
  { group: 'Admin API', limits: ADMIN },
  { group: 'Configuration and state_dir', limits: CONFIGURATION },
  { group: 'Kubernetes, Redis, the log, files of other programs', limits: SOURCES },
];
