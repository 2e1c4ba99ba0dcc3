/** Mutants of one function that no test can notice, for one reason. */
export interface EquivalentMutants {
  readonly file: string;
  /** The function, as the report names it. */
  readonly where: string;
  readonly why: string;
  /** What is replaced by what; `#2` after the original: its second place in the function. White space counts as one space. */
  readonly changes: readonly (readonly [original: string, mutated: string])[];
}

/** Mutants that behave like the original, or differ only in what is no behaviour, such as in time saved. */
export const EQUIVALENT_MUTANTS: readonly EquivalentMutants[] = [
  {
    file: 'otel/record/ledger/canonical-attributes.ts',
    where: 'AttributesDigester.digestSpan',
    why: 'The reader throws nothing else.',
    changes: [
      ['error instanceof MalformedProtobufError', 'true'],
      ['throw error;', ''],
    ],
  },
  {
    file: 'otel/record/ledger/canonical-attributes.ts',
    where: 'AttributesDigester.#copy',
    why: 'Both ways copy the same bytes: which one is faster depends on their number.',
    changes: [
      ['length > SHORT_BYTES', 'true'],
      ['length > SHORT_BYTES', 'length >= SHORT_BYTES'],
    ],
  },
  {
    file: 'otel/record/ledger/canonical-attributes.ts',
    where: 'AttributesDigester.#copy',
    why: 'The memory is large enough, whenever and by how much more it grows.',
    changes: [
      ['at + length > this.#memory.length', 'at + length >= this.#memory.length'],
      ['2 * this.#memory.length', '2 / this.#memory.length'],
      ['2', '3'],
    ],
  },
  {
    file: 'otel/record/ledger/canonical-attributes.ts',
    where: 'AttributesDigester.#copy',
    why: 'The byte behind is overwritten by the next ones, or not hashed.',
    changes: [['index < length', 'index <= length']],
  },
  {
    file: 'otel/record/ledger/canonical-attributes.ts',
    where: '',
    why: 'Memory grows where it is too small, and both ways to copy copy the same bytes.',
    changes: [
      ['16 * 1024', '16 / 1024'],
      ['16#2', '17'],
      ['1024', '1025'],
      ['64', '65'],
    ],
  },
  {
    file: 'otel/record/ledger/canonical-attributes.ts',
    where: 'AttributesDigester.#find',
    why: 'A place that is never filled stands for no bytes.',
    changes: [
      ['0', '1'],
      ['1', '2'],
    ],
  },
  {
    file: 'otel/record/ledger/canonical-attributes.ts',
    where: 'AttributesDigester.#sort',
    why: 'The order before the sort does not matter, and equal attributes have the same bytes.',
    changes: [
      ['order.length !== count', 'true'],
      ['this.#compare(bytes, before, place) <= 0', 'this.#compare(bytes, before, place) < 0'],
    ],
  },
  {
    file: 'otel/record/ledger/ledger-span.ts',
    where: '',
    why: 'More memory than is used.',
    changes: [
      ['64', '65'],
      ['1024', '1025'],
      ['6', '7'],
    ],
  },
  {
    file: 'otel/ledger/ledger-outbox.ts',
    where: 'LedgerOutbox.settleFirst',
    why: 'What was restored came with a batch.',
    changes: [['this.#batch?.settle(1)', 'this.#batch.settle(1)']],
  },
  {
    file: 'otel/ledger/ledger-outbox.ts',
    where: 'LedgerOutbox.store',
    why: 'Storing nothing writes no file.',
    changes: [
      ['this.#waiting.length === 0', 'false'],
      ['return;', ''],
    ],
  },
  {
    file: 'otel/queue/encoded-span-store.ts',
    where: '',
    why: 'Blocks that are a little larger hold the same spans.',
    changes: [
      ['256', '257'],
      ['1024', '1025'],
    ],
  },
  {
    file: 'otel/queue/encoded-span-store.ts',
    where: 'EncodedSpanStore.prepend',
    why: 'A byte of memory that is not used.',
    changes: [['0#2', '1']],
  },
  {
    file: 'otel/queue/encoded-span-store.ts',
    where: 'startOf',
    why: 'There is no end before the first span.',
    changes: [['index === 0', 'false']],
  },
  {
    file: 'otel/queue/export-loop/batch-limit.ts',
    where: 'BatchLimit.grow',
    why: 'Nobody asks for this state: it is neither of the others.',
    changes: [["'on_trial'", "''"]],
  },
  {
    file: 'otel/queue/export-loop/ledger-export.ts',
    where: 'LedgerExport.sendAll',
    why: 'Only a batch of several is split.',
    changes: [["decision.action === 'settle' && decision.rejectedCount > 0", 'decision.rejectedCount > 0']],
  },
  {
    file: 'otel/queue/export-loop/export-loop.ts',
    where: 'ExportLoop.notify',
    why: 'To wake the loop once more costs time: it looks at the queue, and goes on waiting.',
    changes: [
      ['this.#notified.signal.aborted', 'false'],
      ['return;', ''],
      ['this.#collaborators.queue.size === 1 || this.#isBatchFull()', 'true'],
    ],
  },
  {
    file: 'otel/queue/export-loop/export-loop.ts',
    where: 'ExportLoop.#untilBatchIsDue',
    why: 'Only the first of them is looked at.',
    changes: [['1', '2']],
  },
  {
    file: 'otel/queue/export-loop/spool-transfer.ts',
    where: 'SpoolTransfer.settle',
    why: 'What was restored came with a batch.',
    changes: [['this.#batch?.settle(restoredCount)', 'this.#batch.settle(restoredCount)']],
  },
  {
    file: 'otel/queue/export-loop/spool-transfer.ts',
    where: 'SpoolTransfer.storeQueue',
    why: 'Storing nothing writes no file.',
    changes: [
      ['queue.size === 0', 'false'],
      ['return;', ''],
    ],
  },
  {
    file: 'otel/queue/recent-records.ts',
    where: 'RecentRecords.failed',
    why: 'From the first number on, all failures are known, and others do not match: they are decoded in vain.',
    changes: [
      ['tag < first && !known.has(tag)', '!known.has(tag)'],
      ['tag < first', 'tag <= first'],
    ],
  },
  {
    file: 'otel/queue/recent-records.ts',
    where: 'SpanRing.firstComplete',
    why: 'With a later number, records are decoded in vain.',
    changes: [
      ['this.#hasRemoved', 'true'],
      ['this.#spans.peek(1)[0]?.tag ?? Number.POSITIVE_INFINITY', 'Number.POSITIVE_INFINITY'],
      ['1', '2'],
      ['0', '1'],
      ['0#2', '1'],
    ],
  },
  {
    file: 'otel/queue/recent-records.ts',
    where: 'SpanRing',
    why: 'With a later number, records are decoded in vain.',
    changes: [['false', 'true']],
  },
  {
    file: 'otel/queue/record-receiver.ts',
    where: 'RecordReceiver.workerEnded',
    why: 'A worker that ends has begun.',
    changes: [['instance !== undefined', 'true']],
  },
  {
    file: 'otel/queue/record-receiver.ts',
    where: 'RecordReceiver.#receiveOne',
    why: 'Only encoded spans are queued.',
    changes: [['isQueued && encodedSpan !== null', 'isQueued']],
  },
  {
    file: 'otel/queue/shared-queue-state.ts',
    where: '',
    why: 'Rows that are farther apart.',
    changes: [['16', '17']],
  },
  {
    file: 'otel/queue/worker-record-sender.ts',
    where: '',
    why: 'A millisecond more or less to gather records.',
    changes: [['5', '6']],
  },
  {
    file: 'otel/queue/worker-record-sender.ts',
    where: 'WorkerRecordSender.flush',
    why: 'To clear no timer does nothing.',
    changes: [['this.#timer !== null', 'true']],
  },
  {
    file: 'otel/queue/worker-record-sender.ts',
    where: 'pack',
    why: 'A byte behind the last span that nobody reads.',
    changes: [['0#2', '1']],
  },
  {
    file: 'src/access/limits/admission.ts',
    where: 'Admission.#retryAfterSecondsOf',
    why: 'Another of the limits has refused the request, and its wait is at least one second.',
    changes: [['0', '1']],
  },
  {
    file: 'src/access/limits/admission.ts',
    where: 'Admission.#beginInflight',
    why: 'Only a limit refuses a request.',
    changes: [
      ['maxInflight ?? 0', 'maxInflight'],
      ['0', '1'],
    ],
  },
  {
    file: 'src/access/limits/admission.ts',
    where: 'unitsOf',
    why: 'Nothing is taken from a budget that does not exist, or given back to it; null counts as 0.',
    changes: [
      ['0', '1'],
      ['perMinuteOf(kind, limits) ?? 0', 'perMinuteOf(kind, limits)'],
    ],
  },
  {
    file: 'src/access/limits/admission.ts',
    where: 'Admission',
    why: 'The constructor sets it in any case.',
    changes: [['false', 'true']],
  },
  {
    file: 'src/access/limits/admission.ts',
    where: 'Admission.reserveTokens',
    why: 'Every budget but that of requests is that of tokens.',
    changes: [["'tokens'#2", "''"]],
  },
  {
    file: 'src/access/limits/client-limit-table.ts',
    where: 'ClientLimitTable.addUsed',
    why: 'Any number but 0 says that it has changed.',
    changes: [['1', '2']],
  },
  {
    file: 'src/access/limits/client-limit-table.ts',
    where: 'ClientLimitTable.#shareOf',
    why: 'The idle share of a gateway that is alone is the whole limit.',
    changes: [['gatewayCount <= 1', 'gatewayCount < 1']],
  },
  {
    file: 'src/access/limits/client-limit-table.ts',
    where: '',
    why: 'Every type of a column but int64 is int32.',
    changes: [
      ["'int32'", "''"],
      ["'int32'#2", "''"],
      ["'int32'#3", "''"],
      ["'int32'#4", "''"],
      ["'int32'#5", "''"],
      ["'int32'#6", "''"],
    ],
  },
  {
    file: 'src/access/limits/client-limit-table.ts',
    where: 'ClientLimitTable.takeChanged',
    why: 'Reading first only spares a write.',
    changes: [
      [
        'Atomics.load(changed, row) !== 0 && Atomics.exchange(changed, row, 0) !== 0',
        'Atomics.exchange(changed, row, 0) !== 0',
      ],
    ],
  },
  {
    file: 'src/access/limits/client-limit-table.ts',
    where: 'ClientLimitTable.takeRefused',
    why: 'Reading first only spares a write.',
    changes: [['Atomics.load(refused, row) === 0', 'false']],
  },
  {
    file: 'src/access/limits/client-limit-table.ts',
    where: 'ClientLimitTable.setShare',
    why: 'Atomics stores null as 0.',
    changes: [['share ?? 0', 'share']],
  },
  {
    file: 'src/access/limits/client-limit-table.ts',
    where: 'ClientLimitTable.clearWorker',
    why: 'Nothing is in flight in a row that was never used, and subtracting 0 changes nothing.',
    changes: [
      ['row < usedCount', 'row <= usedCount'],
      ['count !== 0', 'true'],
    ],
  },
  {
    file: 'src/access/limits/client-limit-table.ts',
    where: 'toShapes',
    why: 'More memory than is used, and a type that is not int64, which is int32.',
    changes: [
      ['1', '2'],
      ["'int32'", "''"],
      ['1#2', '2'],
      ["'int32'#2", "''"],
    ],
  },
  {
    file: 'src/access/limits/limit-rows.ts',
    where: 'LimitRows.rowOfTenant',
    why: 'A name without a row in the list of those that asked is passed over.',
    changes: [['row === null', 'false']],
  },
  {
    file: 'src/access/limits/limit-rows.ts',
    where: 'LimitRows.#freeIdleTenants',
    why: 'A name in the list of those that asked has a row, and one that stays in it is passed over.',
    changes: [
      ['this.#tenants.get(name)?.row', 'this.#tenants.get(name).row'],
      ['row === undefined || !this.#table.isUnused(row)', '!this.#table.isUnused(row)'],
      ['this.#askedMs.delete(name);', ''],
    ],
  },
  {
    file: 'src/access/limits/limit-rows.ts',
    where: 'LimitRows.#chargeOne',
    why: 'A cost of 0 changes nothing.',
    changes: [['perMinute === null || units === 0', 'perMinute === null']],
  },
  {
    file: 'src/access/limits/limit-rows.ts',
    where: 'LimitRows.#freeRowsFor',
    why: 'Freeing no row is the same as not beginning to.',
    changes: [['neededCount <= 0', 'neededCount < 0']],
  },
  {
    file: 'src/access/limits/row-numbers.ts',
    where: 'RowNumbers.nameOf',
    why: 'Nobody has a row without a name.',
    changes: [['name !== undefined && this.#rows.get(name) === row', 'this.#rows.get(name) === row']],
  },
  {
    file: 'src/access/limits/row-numbers.ts',
    where: 'RowNumbers.free',
    why: 'Only names with a row are freed.',
    changes: [
      ['row === undefined', 'false'],
      ['return;', ''],
    ],
  },
  {
    file: 'src/access/limits/split-inflight.ts',
    where: 'splitInflight',
    why: 'Without anyone left the next turn finds nobody content.',
    changes: [['open.length > 0', 'open.length >= 0']],
  },
  {
    file: 'src/fleet/rules/drain-status.ts',
    where: 'drainStatusOf',
    why: 'A heartbeat is what makes a gateway valid.',
    changes: [['heartbeat === null || nowMs >= validUntilMs', 'nowMs >= validUntilMs']],
  },
  {
    file: 'src/fleet/rules/drain-status.ts',
    where: 'unconfirmedBy',
    why: 'A gateway without a heartbeat is not valid and confirms nothing, and revisions begin at 1.',
    changes: [
      ['0', '1'],
      ['heartbeat?.drained.get(replica)', 'heartbeat.drained.get(replica)'],
      ['snapshot?.revision ?? 0', 'snapshot?.revision'],
    ],
  },
  {
    file: 'src/fleet/rules/drain-status.ts',
    where: 'propagationOf',
    why: 'Null is not greater than a time, which is never negative.',
    changes: [['state.syncedAtMs ?? Number.NEGATIVE_INFINITY', 'state.syncedAtMs']],
  },
  {
    file: 'src/fleet/rules/liveness.ts',
    where: 'isStable',
    why: 'Both are null until the first read, and neither afterwards.',
    changes: [['readAtMs === null || readableSinceMs === null', 'readableSinceMs === null']],
  },
  {
    file: 'src/fleet/rules/liveness.ts',
    where: 'hasAcknowledged',
    why: 'Undefined is not at least a revision either.',
    changes: [['snapshot?.revision ?? 0', 'snapshot?.revision']],
  },
  {
    file: 'src/fleet/rules/liveness.ts',
    where: 'toGatewayStatuses',
    why: 'A heartbeat is what makes a gateway valid, ids are unique, and any number above 0 sorts alike.',
    changes: [
      ['0', '1'],
      ['heartbeat !== null && nowMs < validUntilMs', 'nowMs < validUntilMs'],
      ['a.id < b.id', 'a.id <= b.id'],
      ['1', '2'],
      ['1#2', '2'],
    ],
  },
  {
    file: 'src/fleet/rules/liveness.ts',
    where: 'findVanished',
    why: 'The process runs for more than a millisecond. Nobody is silent: so nobody has vanished.',
    changes: [
      ['0#2', '1'],
      ['silent.length === 0', 'false'],
    ],
  },
  {
    file: 'src/fleet/rules/ramps.ts',
    where: 'rampsOnJoining',
    why: 'Undefined is sorted to the end, and no ramp is left either way.',
    changes: [['ramps?.get(replica) ?? []', 'ramps?.get(replica)']],
  },
  {
    file: 'src/fleet/rules/reconcile.ts',
    where: 'reconcile',
    why: 'A gateway with a new id has read that it was removed, so its removed ids are new too.',
    changes: [
      ['after.id !== before.id || after.members !== before.members', 'after.members !== before.members'],
    ],
  },
  {
    file: 'src/fleet/rules/reconcile.ts',
    where: 'noteUndrains',
    why: 'The same drain states have no new undrain: this only spares the search.',
    changes: [['after.drains === before.drains', 'false']],
  },
  {
    file: 'src/fleet/rules/reconcile.ts',
    where: 'readPeers',
    why: 'No number is at most undefined, and numbers begin at 1.',
    changes: [['known.heartbeat?.number ?? 0', 'known.heartbeat?.number']],
  },
  {
    file: 'src/fleet/rules/reconcile.ts',
    where: 'remove',
    why: 'The same entries in a new map.',
    changes: [['[...peers].every(isHere)', 'false']],
  },
  {
    file: 'src/fleet/rules/reconcile.ts',
    where: 'withEntries',
    why: 'The same entries in a new map.',
    changes: [['entries.length === 0', 'false']],
  },
  {
    file: 'src/records/verify/backend-sums.ts',
    where: 'compareRow',
    why: 'Numbers begin at 1, and null counts as 0. A list with a first entry has a last one.',
    changes: [
      ['firstSeq ?? 1', 'firstSeq'],
      ['first !== undefined && last !== undefined', 'first !== undefined'],
      ['first !== undefined && last !== undefined', 'last !== undefined'],
    ],
  },
  {
    file: 'src/records/verify/backend-sums.ts',
    where: 'toSums.read',
    why: 'Nothing but a number is a safe integer.',
    changes: [["typeof number === 'number' && Number.isSafeInteger(number)", 'Number.isSafeInteger(number)']],
  },
  {
    file: 'src/records/verify/backend-sums.ts',
    where: 'toSums',
    why: 'A sum that is undefined is compared as little as one that is absent.',
    changes: [["typeof number === 'number'", 'true']],
  },
  {
    file: 'src/records/verify/exported-span.ts',
    where: 'SpanReader.#readSpan',
    why: 'Nobody asks for a value by a key that is no text.',
    changes: [["!isJsonObject(attribute) || typeof attribute.key !== 'string'", '!isJsonObject(attribute)']],
  },
  {
    file: 'src/records/verify/exported-span.ts',
    where: 'countOf',
    why: 'Undefined is not at least 0. Who gets no count takes 0 for it, or refuses both.',
    changes: [
      ['number !== undefined && number >= 0', 'number >= 0'],
      ['number >= 0', 'number > 0'],
    ],
  },
  {
    file: 'src/records/verify/instance-check.ts',
    where: 'InstanceCheck.verdict',
    why: 'Without ledger spans, none is missing between the first and the last.',
    changes: [
      ['ledgers[0]?.number ?? 1', 'ledgers[0]?.number'],
      ['1#2', '2'],
    ],
  },
  {
    file: 'src/records/verify/instance-check.ts',
    where: 'InstanceCheck.#firstSeen',
    why: 'Without records and ledger spans there are no numbers to look at.',
    changes: [['1#2', '2']],
  },
  {
    file: 'src/records/verify/record-file.ts',
    where: 'readHead',
    why: 'A longer head holds the same bytes.',
    changes: [['head.length < LENGTH_BYTES + ZSTD.length', 'head.length <= LENGTH_BYTES + ZSTD.length']],
  },
  {
    file: 'src/records/verify/record-file.ts',
    where: 'readMessages',
    why: 'Bytes are joined before they are needed. A length without a message behind it is no message in any case.',
    changes: [
      ['0', '1'],
      ['waiting.length - start < neededBytes', 'waiting.length - start <= neededBytes'],
    ],
  },
  {
    file: 'src/records/verify/verify-records.ts',
    where: 'toMessage',
    why: 'A code that is absent is no text either.',
    changes: [
      ["!(error instanceof Error) || !('code' in error)", '!(error instanceof Error)'],
      ["'code' in error", 'true'],
    ],
  },
  {
    file: 'src/records/verify/seq-pages.ts',
    where: 'SeqPages.see',
    why: '1 is the flag of a record, which is set in any case.',
    changes: [['0#2', '1']],
  },
  {
    file: 'src/records/verify/seq-pages.ts',
    where: 'SeqPages.runs',
    why: 'The run before the first number is empty, whatever its flags. Where a page starts, nobody asks for the next one.',
    changes: [
      ['0#2', '1'],
      [
        '(starts[nextStart] ?? Number.POSITIVE_INFINITY) <= seq',
        '(starts[nextStart] ?? Number.POSITIVE_INFINITY) < seq',
      ],
    ],
  },
  {
    file: 'src/replicas/routing/least-inflight.ts',
    where: 'leastInflight',
    why: 'The first member is looked at once more.',
    changes: [['seen < set.size', 'seen <= set.size']],
  },
  {
    file: 'src/replicas/routing/prefix-affinity.ts',
    where: 'ownerOfPrefix',
    why: 'The first member is looked at once more.',
    changes: [['seen < set.size', 'seen <= set.size']],
  },
  {
    file: 'src/replicas/routing/prefix-affinity.ts',
    where: 'ownerOfPrefix',
    why: 'Every weight is above -2 too.',
    changes: [['1', '2']],
  },
  {
    file: 'src/replicas/routing/prefix-affinity.ts',
    where: 'weightOf',
    why: 'Half of every weight, in the same order.',
    changes: [['0', '1']],
  },
  {
    file: 'src/replicas/routing/prefix-affinity.ts',
    where: 'loadBound',
    why: 'The sum over a circle is the same from everywhere.',
    changes: [['0#2', '1']],
  },
  {
    file: 'src/replicas/shared/ramp.ts',
    where: 'rampShare',
    why: 'At its end the line is at 1.',
    changes: [['elapsedMs >= durationMs', 'elapsedMs > durationMs']],
  },
  {
    file: 'src/replicas/routing/round-robin.ts',
    where: 'roundRobin',
    why: 'The first member, which is not open, is looked at once more.',
    changes: [['passed < set.size', 'passed <= set.size']],
  },
];
