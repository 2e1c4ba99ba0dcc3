/** Formats a figure for people: with one decimal below `wholeFrom`, from there on whole and with thousands separators. */
export function toFigureText(value: number, wholeFrom: number): string {
  return value < wholeFrom ? value.toFixed(1) : Math.round(value).toLocaleString('en');
}
