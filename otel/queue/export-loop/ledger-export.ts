import { decideExport, type ExportHealth } from '#otel/export';
import type { LedgerOutbox } from '#otel/ledger';
import type { ExportCounters } from '../export-stats.ts';
import type { ExportCalls, ExportSignals } from './export-calls.ts';

/** What the export of ledger spans works with. */
export interface LedgerExportCollaborators {
  readonly ledgerOutbox: LedgerOutbox;
  readonly counters: ExportCounters;
  readonly calls: ExportCalls;
  readonly health: ExportHealth;
  readonly signals: ExportSignals;
}

/** Sends ledger spans as records are sent, between their batches. */
export class LedgerExport {
  readonly #collaborators: LedgerExportCollaborators;

  constructor(collaborators: LedgerExportCollaborators) {
    this.#collaborators = collaborators;
  }

  /** Sends those that wait, one in each call: a collector that rejects one rejects no other with it. */
  async sendAll(): Promise<void> {
    const { ledgerOutbox, counters, calls, health, signals } = this.#collaborators;
    for (let span = ledgerOutbox.first; span !== undefined; span = ledgerOutbox.first) {
      if (signals.cut.aborted) return;
      const outcome = await calls.attempt([span], signals.cut);
      if (signals.cut.aborted && outcome.kind === 'unanswered') return;
      const decision = decideExport(outcome, 1);
      if (decision.action === 'retry') {
        await calls.backOff(decision, signals);
        continue;
      }
      calls.answered();
      if (decision.action === 'reject') {
        counters.add('failedCalls');
        health.ledgerRejected(decision.reason, decision.message);
      } else if (decision.action === 'settle' && decision.rejectedCount > 0) {
        health.ledgerRejected('partial_success', decision.message);
      }
      await ledgerOutbox.settleFirst();
    }
  }
}
