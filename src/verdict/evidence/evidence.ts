/*
 * Evidence that grows with each observation and may be looked at at any time: e-processes, and the bets behind them.
 *
 * It never knows what is observed.
 * Begin with e-process.ts.
 */

export {
  type Evidence,
  logEvidence,
  SYMMETRIC_BETS,
  startDetection,
  symmetricGains,
  withGains,
  withGainsSince,
} from './e-process.ts';
