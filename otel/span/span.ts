/*
 * The spans: starts and ends them with the SDK, and hands ended ones on.
 *
 * It never knows what becomes of an ended span.
 * Begin with request-span.ts.
 */

export { type AdminAction, startAdminSpans } from './admin-spans.ts';
export type { AttemptSpan } from './child-spans.ts';
export type { TraceContextFields } from './incoming-context.ts';
export {
  createParkedSpanEnder,
  type Recorder,
  type RecorderSettings,
  startRecorder,
} from './recorder.ts';
export type { ParkedSpan, RequestSpan } from './request-span.ts';
export { ROLLOUT } from './rollout-step.ts';
export type { ShadowSpan } from './shadow-span.ts';
