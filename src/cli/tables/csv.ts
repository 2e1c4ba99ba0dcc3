/** Formats rows as comma-separated values (RFC 4180), the first with the heads. */
export function toCsv(rows: readonly (readonly string[])[]): string {
  return rows.map((cells) => `${cells.map(quote).join(',')}\r\n`).join('');
}

/** A name of anybody's, such as that of a tenant: a spreadsheet would compute what looks like a formula. */
export function toCsvName(name: string): string {
  return /^[=+\-@\t\r]/.test(name) ? `'${name}` : name;
}

function quote(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
