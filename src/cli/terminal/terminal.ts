/*
 * What a command shows on a terminal: colours, and tables that fit.
 *
 * It never knows what it shows.
 * Begin with table.ts.
 */

export { createPaint, type Paint, type Style } from './paint.ts';
export {
  type Cell,
  type Column,
  createGrowingTable,
  tableWidthOf,
  toOneLine,
  toTable,
} from './table.ts';
export { sizeOf } from './terminal-size.ts';
export { shorten, widthOf } from './text-width.ts';
