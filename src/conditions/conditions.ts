/*
 * What is wrong, once: the registry of everything that can be wrong (registry/conditions.yaml), and the board of what is
 * wrong now. Producers tell the board what they find; log, admin API, metrics, command line and page tell what the
 * board says.
 *
 * It never knows a replica, a request or a file: those who do are its producers (src/gateway/conditions).
 * Begin with registry/conditions.yaml, then board.ts.
 */

export {
  type Condition,
  ConditionBoard,
  type ConditionChange,
  type Finding,
  type Producer,
} from './board.ts';
export { type ConditionDefinition, PLACES, SEVERITIES, SUBJECT_KINDS } from './definition.ts';
export { CONDITIONS, type ConditionId } from './registry/condition-table.ts';
export { toFigureTexts } from './to-sentence.ts';
