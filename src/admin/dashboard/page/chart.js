import { formatTime } from './format.js';

/** @typedef {{ readonly times: readonly number[], readonly values: readonly (number | null)[] }} Points */

const HEIGHT_PX = 56;

const scheme = window.matchMedia('(prefers-color-scheme: dark)');

/**
 * A small line chart of the last minutes. The figures beside it have the same content, so it is hidden from screen
 * readers. Pointing at it shows the value at that time.
 */
export class Chart {
  /** @type {uPlot} */
  #plot;
  /** @type {Points} */
  #points = { times: [], values: [] };

  /**
   * @param {HTMLElement} parent @param {object} options @param {(value: number) => string} options.format @param
   * {(text: string | null) => void} options.onPoint called with the value under the pointer; null if there is none
   */
  constructor(parent, { format, onPoint }) {
    parent.setAttribute('aria-hidden', 'true');
    this.#plot = new uPlot(
      {
        width: Math.max(parent.clientWidth, 1),
        height: HEIGHT_PX,
        legend: { show: false },
        padding: [4, 0, 1, 0],
        cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
        scales: { x: { time: false }, y: { range: (_plot, _min, max) => [0, Math.max(max * 1.05, 1e-6)] } },
        axes: [{ show: false }, { show: false }],
        series: [
          {},
          {
            stroke: () => colour('--chart-line'),
            fill: () => colour('--chart-fill'),
            width: 1.5,
            points: { show: false },
            spanGaps: false,
          },
        ],
        hooks: {
          setCursor: [(plot) => this.#report(plot.cursor.idx, format, onPoint)],
        },
      },
      [[], []],
      parent,
    );
    new ResizeObserver(() => this.#fit(parent)).observe(parent);
    scheme.addEventListener('change', () => this.#plot.redraw(false));
  }

  /** @param {Points} points times in milliseconds of the epoch, ascending */
  show(points) {
    this.#points = points;
    this.#plot.setData([[...points.times], [...points.values]]);
  }

  /**
   * @param {number | null | undefined} index of the nearest point
   * @param {(value: number) => string} format
   * @param {(text: string | null) => void} onPoint
   */
  #report(index, format, onPoint) {
    const value = this.#points.values[index ?? -1];
    const time = this.#points.times[index ?? -1];
    const isPoint = value !== undefined && value !== null && time !== undefined;
    onPoint(isPoint ? `${formatTime(time)}: ${format(value)}` : null);
  }

  /** @param {HTMLElement} parent */
  #fit(parent) {
    if (parent.clientWidth > 0) this.#plot.setSize({ width: parent.clientWidth, height: HEIGHT_PX });
  }
}

/** @param {string} name */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name);
}
