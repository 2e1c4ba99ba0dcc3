/*
 * What a command shows on a terminal: colours, tables that fit, a line of progress, the full screen.
 *
 * It never knows what it shows.
 * Begin with table.ts.
 */

export { enterFullScreen, readKeys, sizeOf } from './full-screen.ts';
export { createPaint, type Paint, type Style, WITHOUT_PAINT } from './paint.ts';
export { createProgressLine } from './progress-line.ts';
export {
  type Cell,
  type Column,
  createGrowingTable,
  type GrowingColumn,
  type TableLook,
  tableWidthOf,
  toOneLine,
  toTable,
} from './table.ts';
export { shorten, widthOf } from './text-width.ts';
