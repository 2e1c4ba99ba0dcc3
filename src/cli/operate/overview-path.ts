/** The overview of the admin API without records: commands that show figures need none. */
export const OVERVIEW_PATH = '/admin/overview?after=999999999999999';
