import { gatewayTargets } from './gateway.ts';
import { litellm, smg, vllmRouter } from './inference-gateways.ts';
import { bareWire, fastifyProxy, nodeDispatch, nodePipe, portkey } from './node-proxies.ts';
import { envoy, envoyTraced, haproxy, nginx } from './proxies.ts';
import type { Target } from './target.ts';

/** All that can be measured, in the order of the report. */
export const TARGETS: readonly Target[] = [
  ...gatewayTargets,
  ...[nodePipe, nodeDispatch, bareWire],
  ...[nginx, haproxy, envoy, envoyTraced],
  ...[vllmRouter, smg, fastifyProxy, portkey, litellm],
];
