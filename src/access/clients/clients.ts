/*
 * Which clients there are: those of the configuration, and those of a file that is read again when it changes.
 *
 * It never knows which client sends a request.
 * Begin with read-clients.ts.
 */

export { ClientsWatcher } from './clients-watcher.ts';
export { type ClientList, readClients } from './read-clients.ts';
