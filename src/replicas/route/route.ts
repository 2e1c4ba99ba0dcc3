/*
 * Why a replica was chosen, from how many, and what ruled others out.
 *
 * It never knows a replica, nor how one is chosen.
 * Begin with decide-route.ts. What a record and trusted clients are told of it is in src/proxy/record/recorded-route.ts.
 */

export {
  countExclusions,
  decideRouteReason,
  type Exclusion,
  type Route,
  type RouteFacts,
  type RouteReason,
} from './decide-route.ts';
