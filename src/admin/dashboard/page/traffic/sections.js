/** @import { Overview } from '../../overview.ts' */
/** @import { Past } from '../history/past-loader.js' */
/** @import { ShowRecords } from '../records/filters.js' */
import { byId, setText } from '../elements/dom.js';
import { formatMoment } from '../elements/format.js';
import { toCaption, toKnownSpan, toParts, toReasons } from '../history/figures.js';
import { createBreakdown } from './breakdown.js';
import { createExport } from './export.js';
import { createFailureReasons } from './failure-reasons.js';
import { createSaturation } from './saturation.js';
import { createTiles } from './tiles.js';

/** What the figures of now are of, above each part that can show a range. */
const LIVE_CAPTIONS = {
  'traffic-caption': 'the last minute, and five minutes as lines',
  'reasons-caption': 'the last minute',
  'models-caption': 'the last minute',
  'tenants-caption': 'the last minute',
};

/**
 * Creates the sections about traffic.
 * @param {ShowRecords} showRecords
 */
export function createTrafficSections(showRecords) {
  const tiles = createTiles(byId('tiles', HTMLElement));
  const showReasons = createFailureReasons(byId('reasons', HTMLTableElement), showRecords);
  const showModels = createBreakdown(byId('models', HTMLTableElement), 'model', showRecords);
  const showTenants = createBreakdown(byId('tenants', HTMLTableElement), 'tenant', showRecords);
  const showSaturation = createSaturation(byId('saturation', HTMLElement));
  const showExport = createExport(byId('export', HTMLElement));
  /** @param {(id: string) => string} toText */
  const caption = (toText) => {
    for (const id of Object.keys(LIVE_CAPTIONS)) setText(byId(id, HTMLElement), toText(id));
  };
  return {
    tiles,
    /**
     * Shows what is only known of now.
     * @param {Overview} overview
     */
    showNow(overview) {
      showSaturation(overview);
      showExport(overview);
    },
    /**
     * Shows the figures of now.
     * @param {Overview} overview
     */
    showLive(overview) {
      tiles.showLive(overview);
      showReasons(overview.failure_reasons);
      showModels(overview.models);
      showTenants(overview.tenants);
      for (const [id, text] of Object.entries(LIVE_CAPTIONS)) setText(byId(id, HTMLElement), text);
    },
    /**
     * Shows the figures of a range, as far as they are known.
     * @param {Past} past
     */
    showPast(past) {
      const { usage, timeline, range } = past;
      if (usage === null || timeline === null) return;
      const nowMs = Date.parse(timeline.until);
      const { fromMs } = toKnownSpan(usage.total, nowMs);
      const seconds = Math.max(1, (nowMs - fromMs) / 1_000);
      tiles.showPast(past);
      showReasons(toReasons(usage.reasons));
      showModels(toParts(usage.models, 'model', seconds));
      showTenants(toParts(usage.tenants, 'tenant', seconds));
      const whole = toCaption(range, usage.total, nowMs, (ms) => formatMoment(ms, nowMs));
      caption((id) => (id === 'traffic-caption' ? whole : range.words));
    },
    /**
     * Says that a range is on its way, or why it is not known.
     * @param {string} text
     */
    showNote(text) {
      setText(byId('traffic-caption', HTMLElement), text);
    },
  };
}
