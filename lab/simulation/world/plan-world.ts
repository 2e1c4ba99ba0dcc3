import { type Chance, createChance } from '../engine/chance.ts';
import type { Action, Plan, WeatherPlan } from './plan.ts';
import { planBusyGateway, planCall, planClient, planFault, planUnawareGateway } from './plan-actions.ts';

/** The world of a seed. */
export function planWorld(seed: number): Plan {
  const chance = createChance(seed, 'plan');
  const gateways = chance.chance(70) ? 1 : 2 + chance.below(2);
  const workers = chance.chance(gateways > 1 ? 75 : 55) ? 1 : 2 + chance.below(2);
  const shape = { gateways, workers, replicas: 1 + chance.below(3) };
  const durationMs = chance.between(500, 6_000);
  const when = createTimes(chance, durationMs);
  const clients = 1 + chance.below(12);
  const actions: Action[] = [];
  for (let client = 0; client < clients; client++) {
    actions.push(planClient(chance, `${client}`, chance.below(gateways), when()));
  }
  for (let count = chance.below(7); count > 0; count--) actions.push(planFault(chance, shape, when()));
  for (let count = chance.below(9); count > 0; count--) actions.push(planCall(chance, shape, when()));
  if (gateways > 1 && chance.chance(40)) actions.push(...planUnawareGateway(chance, shape));
  const busy = createChance(seed, 'busy gateway');
  if (gateways > 1 && busy.chance(30)) actions.push(...planBusyGateway(busy, shape));
  const queueSize = chance.chance(15) ? 2 + chance.below(6) : 16_384;
  return {
    seed,
    ...shape,
    maxInflight: chance.chance(20) ? 1 + chance.below(3) : null,
    queueSize,
    batchSize: Math.min(queueSize, chance.chance(40) ? 1 + chance.below(4) : 512),
    routing: chance.pick(['round_robin', 'least_inflight']),
    slowReader: planSlowReader(createChance(seed, 'slow reader'), shape.replicas),
    exportTo: chance.chance(85) ? 'otlp' : 'file',
    hasLedger: chance.chance(50),
    weather: planWeather(chance),
    actions: actions.sort((a, b) => a.atMs - b.atMs),
  };
}

/** Most actions come close together at a few moments: what happens at nearly the same time is what goes wrong. */
function createTimes(chance: Chance, durationMs: number): () => number {
  const moments = Array.from({ length: 1 + chance.below(4) }, () => chance.between(0, durationMs));
  const spreadMs = chance.pick([2, 10, 50, 300]);
  return () =>
    chance.chance(70) ? chance.pick(moments) + chance.between(0, spreadMs) : chance.between(0, durationMs);
}

function planSlowReader(chance: Chance, replicas: number): Plan['slowReader'] {
  return chance.chance(15) ? { replica: chance.below(replicas), pauseMs: chance.between(5, 300) } : null;
}

function planWeather(chance: Chance): WeatherPlan {
  const slow = chance.chance(20);
  return {
    latencyMs: [0.02, slow ? 40 : 2],
    readBytes: chance.pick([65_536, 65_536, 1_400, 200, 17, 1]),
    capacityBytes: chance.pick([65_536, 65_536, 4_096, 300]),
  };
}
