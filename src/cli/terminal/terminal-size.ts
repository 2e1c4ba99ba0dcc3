import type { TextSink } from '#cli/command';

/** The size of a terminal in characters. One that does not know its own, such as a serial console, says 0. */
export function sizeOf({ columns, rows }: TextSink): { readonly columns: number; readonly rows: number } {
  return { columns: columns || 80, rows: rows || 24 };
}
