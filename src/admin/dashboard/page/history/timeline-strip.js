/** @import { Past } from './past-loader.js' */
/** @import { Band, Happening, Lane } from './timeline.js' */
/** @import { Span } from './range.js' */
import { byId, create, setAttribute, setChildren, setText } from '../elements/dom.js';
import { counted, formatDay, formatMinute, withLocalTimes } from '../elements/format.js';
import { toTicks } from './range.js';
import { toHappenings, toLabel, toLanes } from './timeline.js';

/** @typedef {{ readonly item: HTMLLIElement, show(band: Band, nowMs: number): void }} Item */

/** Marks on the axis, where there is room. */
const MAX_TICKS = 8;
const MAX_TICKS_NARROW = 4;
/** The text of a mark behind this share would not fit. */
const LAST_TICK = 0.95;
const DAY_MS = 86_400_000;

const narrow = window.matchMedia('(max-width: 640px)');

/** What happened in a range, as bands in lanes. Each band is a button whose name says all; a press opens a list. */
export class TimelineStrip {
  #box = byId('timeline', HTMLElement);
  #lanes = byId('timeline-lanes', HTMLElement);
  #axis = byId('timeline-axis', HTMLElement);
  #note = byId('timeline-note', HTMLElement);
  #pointed = byId('timeline-pointed', HTMLElement);
  #all = byId('timeline-all', HTMLButtonElement);
  #onPoint;
  #onOpen;
  /** @type {Map<string, Item>} */
  #items = new Map();
  /** @type {{ readonly happenings: readonly Happening[], readonly span: Span }} */
  #shown = { happenings: [], span: { fromMs: 0, untilMs: 1 } };

  /**
   * @param {object} listeners
   * @param {(happenings: readonly Happening[]) => void} listeners.onPoint called with what is pointed at or focused
   * @param {(happenings: readonly Happening[], nowMs: number) => void} listeners.onOpen
   */
  constructor({ onPoint, onOpen }) {
    this.#onPoint = onPoint;
    this.#onOpen = onOpen;
    this.#all.addEventListener('click', () => onOpen(this.#shown.happenings, this.#shown.span.untilMs));
    narrow.addEventListener('change', () => this.#showAxis());
  }

  /**
   * Shows what happened; returns it.
   * @param {Past} past
   * @returns {readonly Happening[]}
   */
  show({ range, timeline, problem }) {
    if (timeline === null) {
      this.showNote(problem ?? '');
      return [];
    }
    const untilMs = Date.parse(timeline.until);
    const span = { fromMs: untilMs - range.ms, untilMs };
    const happenings = toHappenings(timeline.events, untilMs);
    setText(this.#all, `List ${counted(happenings.length, 'event')}`);
    const nothing = happenings.length === 0 ? `Nothing happened in ${range.words}.` : '';
    const older = timeline.next === null ? '' : 'Only the newest 1,000 events are shown.';
    const note = withLocalTimes(timeline.note ?? '');
    this.#draw(happenings, span, [nothing, older, note].filter((text) => text !== '').join(' '));
    return happenings;
  }

  /** Shows a text instead. @param {string} text */
  showNote(text) {
    this.#draw([], this.#shown.span, text);
  }

  /**
   * @param {readonly Happening[]} happenings
   * @param {Span} span
   * @param {string} note
   */
  #draw(happenings, span, note) {
    this.#shown = { happenings, span };
    this.#showLanes(toLanes(happenings, span));
    this.#showAxis();
    this.#all.hidden = happenings.length === 0;
    setText(this.#note, note);
  }

  /** @param {readonly Lane[]} lanes */
  #showLanes(lanes) {
    setAttribute(this.#box, 'data-lanes', String(lanes.length));
    /** @type {Map<string, Item>} */
    const items = new Map();
    const { untilMs } = this.#shown.span;
    const rows = lanes.flatMap(({ title, rows: bandRows }) => {
      const lists = bandRows.map((bands, at) => {
        const list = this.#listOf(title, at);
        const shown = bands.map((band) => {
          const key = toKey(title, band);
          const item = this.#items.get(key) ?? this.#createItem();
          item.show(band, untilMs);
          items.set(key, item);
          return item.item;
        });
        setChildren(list, shown);
        return list;
      });
      return lists;
    });
    setChildren(this.#lanes, rows);
    this.#items = items;
  }

  /**
   * The list of a row; the first one of a lane has its title.
   * @param {string} title
   * @param {number} at
   */
  #listOf(title, at) {
    const id = `lane-${title.toLowerCase()}-${at}`;
    const known = this.#lanes.querySelector(`#${id}`);
    if (known !== null) return known;
    const name = at === 0 ? title : `${title}, line ${at + 1}`;
    return create('ul', { id, class: 'lane', 'aria-label': name, 'data-title': at === 0 ? title : '' });
  }

  /** @returns {Item} */
  #createItem() {
    const text = create('span', { class: 'band-text', 'aria-hidden': 'true' });
    const button = create('button', { type: 'button', class: 'band', 'aria-haspopup': 'dialog' }, text);
    const item = create('li', {}, button);
    /** @type {Band | null} */
    let shown = null;
    const point = () => {
      if (shown === null) return;
      setText(this.#pointed, button.getAttribute('aria-label') ?? '');
      this.#onPoint(shown.happenings);
    };
    const leave = () => {
      setText(this.#pointed, '');
      this.#onPoint([]);
    };
    for (const event of ['pointerenter', 'focus']) button.addEventListener(event, point);
    for (const event of ['pointerleave', 'blur']) button.addEventListener(event, leave);
    button.addEventListener('click', () => {
      if (shown !== null) this.#onOpen(shown.happenings, this.#shown.span.untilMs);
    });
    return {
      item,
      show(band, nowMs) {
        shown = band;
        const [first] = band.happenings;
        const count = band.happenings.length;
        setText(text, count === 1 ? (first?.title ?? '') : counted(count, 'event'));
        setAttribute(button, 'aria-label', toLabel(band, nowMs));
        setAttribute(button, 'data-look', band.look);
        setAttribute(
          button,
          'data-open',
          band.happenings.some(({ untilMs }) => untilMs === null) ? '' : null,
        );
        button.style.left = `${100 * band.left}%`;
        button.style.width = `${100 * band.width}%`;
      },
    };
  }

  #showAxis() {
    const { span, happenings } = this.#shown;
    const ticks = happenings.length === 0 ? [] : toTicks(span, narrow.matches ? MAX_TICKS_NARROW : MAX_TICKS);
    const toText = span.untilMs - span.fromMs > DAY_MS ? formatDay : formatMinute;
    const marks = ticks.flatMap((ms) => {
      const left = (ms - span.fromMs) / (span.untilMs - span.fromMs);
      if (left > LAST_TICK) return [];
      const mark = create('span', {}, toText(ms));
      mark.style.left = `${100 * left}%`;
      return [mark];
    });
    this.#axis.replaceChildren(...marks);
  }
}

/**
 * What a band stays the same by while time goes on, so that it keeps the focus.
 * @param {string} title
 * @param {Band} band
 */
function toKey(title, { happenings }) {
  const [first] = happenings;
  return `${title} ${first?.fromMs} ${first?.title}`;
}
