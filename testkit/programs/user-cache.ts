import { homedir } from 'node:os';
import { join } from 'node:path';

/** What the programs of the lab install and build: in XDG_CACHE_HOME or ~/.cache, outside the checkout. */
export const USER_CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'spangate');
