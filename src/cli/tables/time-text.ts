/** Formats a time of the admin API to the second, as people read it. */
export const toTimeText = (time: unknown) => String(time).replace(/\.\d+Z$/, 'Z');
