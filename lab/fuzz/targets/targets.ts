import type { FuzzTarget } from '../fuzz-target.ts';
import { FORM } from './bodies/form.ts';
import { JSON_READER } from './bodies/json.ts';
import { MODEL_NAME } from './bodies/model-name.ts';
import { SPLICE } from './bodies/splice.ts';
import { SSE } from './bodies/sse.ts';
import { STRINGS } from './bodies/strings.ts';
import { USAGE } from './bodies/usage.ts';
import { CLIENTS } from './documents/clients.ts';
import { COLLECTOR } from './documents/collector.ts';
import { CONFIG } from './documents/config.ts';
import { FLEET } from './documents/fleet.ts';
import { JWT } from './documents/jwt.ts';
import { KUBERNETES } from './documents/kubernetes.ts';
import { ROLLOUT } from './documents/rollout.ts';
import { STATE } from './documents/state.ts';
import { TRACE } from './documents/trace.ts';
import { EXPORT_TRACE } from './records/export-trace.ts';
import { LEDGER } from './records/ledger.ts';

/** All targets, in the order of the document. */
export const TARGETS: readonly FuzzTarget[] = [
  SSE,
  JSON_READER,
  STRINGS,
  SPLICE,
  USAGE,
  FORM,
  MODEL_NAME,
  CONFIG,
  CLIENTS,
  KUBERNETES,
  COLLECTOR,
  FLEET,
  STATE,
  ROLLOUT,
  LEDGER,
  EXPORT_TRACE,
  TRACE,
  JWT,
];
