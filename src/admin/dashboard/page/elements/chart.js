/** @import { Look } from '../history/timeline.js' */
/** @import { Span } from '../history/range.js' */
import { formatMoment } from './format.js';
import { toFailureLine } from './scale.js';

/** @typedef {readonly (number | null)[]} Values */
/** @typedef {{ readonly times: readonly number[], readonly values: Values, readonly errors?: Values }} Points */
/** Something that happened, drawn over the lines: a band, or a line if it was over at once. */
/** @typedef {Span & { readonly look: Look }} Mark */

const HEIGHT_PX = 48;
/** Bands lie over each other, so they are faint; a line is thin, so it is not. */
const BAND_ALPHA = 0.12;
const LINE_ALPHA = 0.5;
const STRONG_ALPHA = 0.42;

const scheme = window.matchMedia('(prefers-color-scheme: dark)');

/**
 * A small line chart of a range of time. A second line, for errors, is drawn where there were any. The figures beside it
 * have the same content, so it is hidden from screen readers. Pointing at it shows the values at that time.
 */
export class Chart {
  /** @type {uPlot} */
  #plot;
  /** @type {Points} */
  #points = { times: [], values: [] };
  #least = 0;
  /** @type {Span} */
  #span = { fromMs: 0, untilMs: 1 };
  /** @type {readonly Mark[]} */
  #marks = [];
  /** @type {Span | null} */
  #highlight = null;

  /**
   * @param {HTMLElement} parent
   * @param {object} options
   * @param {(value: number, error: number | null) => string} options.format
   * @param {(text: string | null) => void} options.onPoint called with the values under the pointer; null: none
   * @param {boolean} [options.isErrors] whether only the second line has figures, and the first is the ground below it
   */
  constructor(parent, { format, onPoint, isErrors = false }) {
    parent.setAttribute('aria-hidden', 'true');
    this.#plot = new uPlot(
      {
        width: Math.max(parent.clientWidth, 1),
        height: HEIGHT_PX,
        legend: { show: false },
        padding: [4, 0, 1, 0],
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        scales: {
          x: { time: false, range: () => [this.#span.fromMs, this.#span.untilMs] },
          y: { range: (_plot, _min, max) => [0, Math.max(max * 1.05, this.#least)] },
        },
        axes: [{ show: false }, { show: false }],
        series: [
          {},
          isErrors ? line('--line-strong') : line('--chart-line', '--chart-fill'),
          line('--chart-error', '--chart-error-fill'),
        ],
        hooks: {
          drawClear: [(plot) => this.#drawMarks(plot)],
          setCursor: [(plot) => this.#report(plot.cursor.idx, format, onPoint)],
        },
      },
      [[], [], []],
      parent,
    );
    new ResizeObserver(() => this.#fit(parent)).observe(parent);
    scheme.addEventListener('change', () => this.#plot.redraw(false));
  }

  /**
   * @param {Points} points times in milliseconds of the epoch, ascending
   * @param {number} least the least value at the top of the chart
   * @param {Span} [span] from its left to its right; default: that of the points
   */
  show(points, least, span = { fromMs: points.times[0] ?? 0, untilMs: points.times.at(-1) ?? 1 }) {
    this.#points = points;
    this.#least = least;
    this.#span = span;
    const errors = toFailureLine(points.errors ?? points.values.map(() => null));
    this.#plot.setData([[...points.times], [...points.values], errors]);
  }

  /**
   * Draws what happened from now on.
   * @param {readonly Mark[]} marks
   */
  mark(marks) {
    this.#marks = marks;
    this.#plot.redraw(false);
  }

  /**
   * Draws one span more strongly than the others; null: none.
   * @param {Span | null} span
   */
  highlight(span) {
    this.#highlight = span;
    this.#plot.redraw(false);
  }

  /** Bands and lines, below the lines of the figures. @param {uPlot} plot */
  #drawMarks(plot) {
    const { ctx, bbox } = plot;
    const toX = (/** @type {number} */ ms) => plot.valToPos(ms, 'x', true);
    const least = window.devicePixelRatio;
    ctx.save();
    for (const { look, fromMs, untilMs } of this.#marks) {
      const left = Math.max(toX(fromMs), bbox.left);
      const right = untilMs > this.#span.untilMs ? bbox.left + bbox.width : toX(untilMs);
      if (right < bbox.left || left > bbox.left + bbox.width) continue;
      // What lasts from one end to the other marks nothing.
      const isWhole = left === bbox.left && right === bbox.left + bbox.width;
      const isHighlighted = fromMs === this.#highlight?.fromMs && untilMs === this.#highlight.untilMs;
      if (isWhole && !isHighlighted) continue;
      ctx.fillStyle = colour(`--mark-${look}`);
      ctx.globalAlpha = isHighlighted ? STRONG_ALPHA : right - left < 2 * least ? LINE_ALPHA : BAND_ALPHA;
      ctx.fillRect(left, bbox.top, Math.max(right - left, least), bbox.height);
    }
    ctx.restore();
  }

  /**
   * @param {number | null | undefined} index of the nearest point
   * @param {(value: number, error: number | null) => string} format
   * @param {(text: string | null) => void} onPoint
   */
  #report(index, format, onPoint) {
    const { times, values, errors } = this.#points;
    const value = values[index ?? -1];
    const time = times[index ?? -1];
    const isPoint = value !== undefined && value !== null && time !== undefined;
    const moment = formatMoment(time ?? 0, this.#span.untilMs);
    onPoint(isPoint ? `${moment}: ${format(value, errors?.[index ?? -1] ?? null)}` : null);
  }

  /** @param {HTMLElement} parent */
  #fit(parent) {
    if (parent.clientWidth > 0) this.#plot.setSize({ width: parent.clientWidth, height: HEIGHT_PX });
  }
}

/**
 * A line in these colours of the style, as they are when it is drawn.
 * @param {string} stroke
 * @param {string} [fill]
 */
function line(stroke, fill) {
  return {
    stroke: () => colour(stroke),
    ...(fill === undefined ? {} : { fill: () => colour(fill) }),
    width: 1.5,
    points: { show: false },
    spanGaps: false,
  };
}

/** @param {string} name */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}
