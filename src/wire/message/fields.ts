/** Header or trailer fields in their original order and spelling. Values are latin-1, without surrounding white space. */
export class Fields {
  /** Parallel lists: entry i of each list belongs to the same field line. */
  readonly names: string[] = [];
  readonly lowerNames: string[] = [];
  readonly values: string[] = [];

  /** The number of field lines. */
  get count(): number {
    return this.names.length;
  }

  /** Appends a field line. */
  add(name: string, lowerName: string, value: string): void {
    this.names.push(name);
    this.lowerNames.push(lowerName);
    this.values.push(value);
  }

  /** The value of a field. Several fields of the same name are joined by ", ". */
  get(lowerName: string): string | undefined {
    const { lowerNames, values } = this;
    const first = lowerNames.indexOf(lowerName);
    if (first === -1) return undefined;
    let value = values[first] as string;
    for (let i = first + 1; i < lowerNames.length; i++) {
      if (lowerNames[i] === lowerName) value += `, ${values[i]}`;
    }
    return value;
  }
}
