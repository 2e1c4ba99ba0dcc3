/** @import { Filter, NameField, ShownRecord, StatusGroup } from './filters.js' */
import { byId, create } from '../elements/dom.js';
import { NO_FILTER, namesIn, STATUS_GROUPS } from './filters.js';

/** @type {readonly (readonly [field: NameField, title: string])[]} */
const NAME_FILTERS = [
  ['replica', 'Replica'],
  ['model', 'Model'],
  ['tenant', 'Tenant'],
  ['error_type', 'Error'],
];

/** The value of the option without a filter. The values of names start with `=`. */
const ANY = '';

/** The selects above the list of requests. */
export class FilterForm {
  /** @type {Map<NameField, HTMLSelectElement>} */
  #selects = new Map();
  #status;
  #clear = create('button', { type: 'button', class: 'quiet' }, 'Clear filters');
  /** @type {Filter} */
  #filter = NO_FILTER;

  /** @param {(filter: Filter) => void} onChange */
  constructor(onChange) {
    const form = byId('filters', HTMLFormElement);
    for (const [field, title] of NAME_FILTERS) {
      const select = create('select', { id: `filter-${field}`, 'aria-label': title });
      select.addEventListener('change', () =>
        onChange({ ...this.#filter, [field]: select.value === ANY ? null : select.value.slice(1) }),
      );
      this.#selects.set(field, select);
      form.append(select);
    }
    const options = STATUS_GROUPS.map(([group, title]) => create('option', { value: group }, title));
    this.#status = create('select', { id: 'filter-status', 'aria-label': 'Status' }, ...options);
    this.#status.addEventListener('change', () =>
      onChange({ ...this.#filter, status: /** @type {StatusGroup} */ (this.#status.value) }),
    );
    this.#clear.addEventListener('click', () => onChange(NO_FILTER));
    form.append(this.#status, this.#clear);
    form.addEventListener('submit', (event) => event.preventDefault());
  }

  /**
   * Shows the filter, with the names in these records to choose from.
   * @param {Filter} filter
   * @param {readonly ShownRecord[]} records
   */
  show(filter, records) {
    this.#filter = filter;
    this.#status.value = filter.status;
    for (const [field, title] of NAME_FILTERS) this.#offerNames(field, title.toLowerCase(), records);
  }

  /**
   * Updates the options of a select. Always includes the selected one.
   * @param {NameField} field
   * @param {string} title
   * @param {readonly ShownRecord[]} records
   */
  #offerNames(field, title, records) {
    const select = this.#selects.get(field);
    const chosen = this.#filter[field];
    if (select === undefined) return;
    const names = namesIn(records, field);
    const offered = chosen === null || names.includes(chosen) ? names : [chosen, ...names];
    const values = [ANY, ...offered.map((name) => `=${name}`)];
    const { options } = select;
    const isSame =
      options.length === values.length && values.every((value, at) => options[at]?.value === value);
    if (!isSame)
      select.replaceChildren(
        create('option', { value: ANY }, `Any ${title}`),
        ...offered.map((name) =>
          create('option', { value: `=${name}` }, name === '' ? `Without ${title}` : name),
        ),
      );
    select.value = chosen === null ? ANY : `=${chosen}`;
  }
}
