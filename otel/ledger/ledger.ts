/*
 * Numbers each record and states what became of it, so that `gateway verify` can prove that none is missing.
 *
 * It never knows a queue or a network.
 * Begin with numbered-ledger.ts; tell-losses.ts tells others what the ledger declares.
 */

export { NO_PREVIOUS } from './ledger-book.ts';
export { LedgerOutbox } from './ledger-outbox.ts';
export { Ledger, NO_LEDGER, type RecordLedger } from './numbered-ledger.ts';
export { type RecordLoss, tellLosses } from './tell-losses.ts';
