import { formatTime } from './format.js';
import { toFailureLine } from './scale.js';

/** @typedef {readonly (number | null)[]} Values */
/** @typedef {{ readonly times: readonly number[], readonly values: Values, readonly errors?: Values }} Points */

const HEIGHT_PX = 48;

const scheme = window.matchMedia('(prefers-color-scheme: dark)');

/**
 * A small line chart of the last minutes. A second line, for errors, is drawn where there were any. The figures beside it
 * have the same content, so it is hidden from screen readers. Pointing at it shows the values at that time.
 */
export class Chart {
  /** @type {uPlot} */
  #plot;
  /** @type {Points} */
  #points = { times: [], values: [] };
  #least = 0;

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
          x: { time: false },
          y: { range: (_plot, _min, max) => [0, Math.max(max * 1.05, this.#least)] },
        },
        axes: [{ show: false }, { show: false }],
        series: [
          {},
          isErrors ? line('--line-strong') : line('--chart-line', '--chart-fill'),
          line('--chart-error', '--chart-error-fill'),
        ],
        hooks: { setCursor: [(plot) => this.#report(plot.cursor.idx, format, onPoint)] },
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
   */
  show(points, least) {
    this.#points = points;
    this.#least = least;
    const errors = toFailureLine(points.errors ?? points.values.map(() => null));
    this.#plot.setData([[...points.times], [...points.values], errors]);
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
    onPoint(isPoint ? `${formatTime(time)}: ${format(value, errors?.[index ?? -1] ?? null)}` : null);
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
