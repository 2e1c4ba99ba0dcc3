import { gatewayTargets } from './gateway.ts';
import { fastifyProxy, nodePipe, portkey } from './node-proxies.ts';
import type { Target } from './target.ts';

/** All that can be measured, in the order of the report. */
export const TARGETS: readonly Target[] = [...gatewayTargets, nodePipe, fastifyProxy, portkey];
