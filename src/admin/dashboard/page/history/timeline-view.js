/** @import { Tiles } from '../traffic/tiles.js' */
/** @import { Past } from './past-loader.js' */
/** @import { Happening } from './timeline.js' */
import { toMarks } from './timeline.js';
import { TimelineDialog } from './timeline-dialog.js';
import { TimelineStrip } from './timeline-strip.js';

/** What happened, below the charts and in them. */
export class TimelineView {
  #tiles;
  #dialog = new TimelineDialog();
  #strip = new TimelineStrip({
    onPoint: (happenings) => this.#highlight(happenings),
    onOpen: (happenings, nowMs) => this.#dialog.open(happenings, nowMs),
  });

  /** @param {Tiles} tiles */
  constructor(tiles) {
    this.#tiles = tiles;
  }

  /** @param {Past} past */
  show(past) {
    this.#tiles.mark(toMarks(this.#strip.show(past)));
  }

  /** Shows a text instead. @param {string} text */
  showNote(text) {
    this.#strip.showNote(text);
    this.#tiles.mark([]);
  }

  /** @param {readonly Happening[]} happenings */
  #highlight(happenings) {
    const [first] = toMarks(happenings);
    this.#tiles.highlight(first ?? null);
  }
}
