/** @import { Overview } from '../../overview.ts' */
/** @import { ShowRecords } from '../records/filters.js' */
import { byId } from '../elements/dom.js';
import { createBreakdown } from './breakdown.js';
import { createExport } from './export.js';
import { createFailureReasons } from './failure-reasons.js';
import { createSaturation } from './saturation.js';
import { createTiles } from './tiles.js';

/**
 * Creates the sections about traffic. The returned function shows an overview in them.
 * @param {ShowRecords} showRecords
 * @returns {(overview: Overview) => void}
 */
export function createTrafficSections(showRecords) {
  const shows = [
    createTiles(byId('tiles', HTMLElement)),
    createFailureReasons(byId('reasons', HTMLTableElement), showRecords),
    createBreakdown(byId('models', HTMLTableElement), 'model', showRecords),
    createBreakdown(byId('tenants', HTMLTableElement), 'tenant', showRecords),
    createSaturation(byId('saturation', HTMLElement)),
    createExport(byId('export', HTMLElement)),
  ];
  return (overview) => {
    for (const show of shows) show(overview);
  };
}
