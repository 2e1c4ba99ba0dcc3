/** @import { Overview } from '../../overview.ts' */
import { byId, setAttribute, setText } from '../elements/dom.js';
import { counted, formatAgo, formatMoment } from '../elements/format.js';

const PRODUCT = 'Spangate';

/** Which gateway the page shows, in the header and in the title of the tab. */
export class GatewayHeader {
  #name = byId('gateway-name', HTMLElement);
  #facts = byId('gateway-facts', HTMLElement);
  #fleet = byId('fleet-note', HTMLElement);

  /**
   * @param {Overview} overview
   * @param {boolean} isWrong whether the tab shows that something is wrong
   */
  show({ gateway, time, other_gateways }, isWrong) {
    this.#fleet.hidden = other_gateways === null;
    setText(this.#fleet, other_gateways === null ? '' : toFleetNote(gateway.name, other_gateways));
    setText(this.#name, gateway.name);
    const facts = [
      // The name is the host's, unless it is configured.
      ...(gateway.host === gateway.name ? [] : [gateway.host]),
      `version ${gateway.version}`,
      `up ${formatAgo(Date.parse(time) - Date.parse(gateway.started_at))}`,
      `config of ${formatMoment(gateway.config_loaded_at, time)}`,
    ];
    // A fact is never broken over two lines.
    setText(this.#facts, facts.map((fact) => fact.replaceAll(' ', '\u00a0')).join(' · '));
    const details = [
      `process ${gateway.pid} on ${gateway.host}, ${counted(gateway.workers, 'worker')}`,
      `started ${formatMoment(gateway.started_at, time)}`,
      `configuration loaded ${formatMoment(gateway.config_loaded_at, time)}`,
    ];
    setAttribute(this.#facts, 'title', details.join('\n'));
    showTitle(gateway.name, isWrong);
  }

  /** Marks the tab, because the gateway does not answer. */
  showLost() {
    showTitle(this.#name.textContent, true);
  }

  /** Shows no gateway. */
  clear() {
    setText(this.#name, '');
    setText(this.#facts, '');
    showTitle('', false);
  }
}

/** The note names no more. */
const MAX_NAMES = 5;

/**
 * Says that the figures are those of one gateway of a fleet.
 * @param {string} name
 * @param {readonly string[]} others
 */
export function toFleetNote(name, others) {
  const alone = `The figures, the requests and the history are those of ${name} alone`;
  if (others.length === 0) return `${alone}. No other gateway of its fleet runs.`;
  const more = others.length > MAX_NAMES ? ` and ${others.length - MAX_NAMES} more` : '';
  const names = `${others.slice(0, MAX_NAMES).join(', ')}${more}`;
  const have = others.length === 1 ? 'has its own' : 'have their own';
  return `${alone}: ${names} of the same fleet ${have}. A drain is for all of them.`;
}

/**
 * @param {string} name
 * @param {boolean} isWrong
 */
function showTitle(name, isWrong) {
  const title = name === '' ? PRODUCT : `${name} · ${PRODUCT}`;
  document.title = isWrong ? `⚠ ${title}` : title;
}
