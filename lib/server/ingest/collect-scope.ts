import type { EventRecord, LogRecord, ProducerRef, StatusRecord } from '@interlude/protocol/envelope';
import { isFailure, readInsight } from '@interlude/protocol/insight';
import { MAX_SNAPSHOT_PARTS } from '@interlude/protocol/limits';
import { obligationsTouchedBy } from '@interlude/protocol/projections/obligations';
import { partsWithin } from '@interlude/protocol/projections/snapshot-parts';
import { affectsEveryTask, startsWithoutCause } from '@interlude/protocol/projections/tasks';
import { Yielder } from '@/db/yield-to-loop';
import { BatchScope, partKey } from '@/lib/server/event-log/batch-scope';
import { parseStatus } from './parse-status';
import { mentionedTasks } from './task-router';
import { namesOf, type ValidatedRecord } from './validate-record';

/** Collects everything that a batch may touch, so one read can load it. Yields to the event loop in between. */
export async function collectScope(source: ProducerRef, records: readonly ValidatedRecord[]): Promise<BatchScope> {
  const scope = new BatchScope(source.id);
  const snapshots = { left: MAX_SNAPSHOT_PARTS };
  await new Yielder().each(records, ({ validation }) => {
    const { agentId, sessionId } = namesOf(validation);
    const isLog = validation.isValid && validation.record.kind === 'log';
    if (agentId !== null) scope.agentIds.add(agentId);
    if (typeof sessionId === 'string' && !isLog) scope.addName(sessionId, agentId);
    if (typeof sessionId === 'string' && agentId === null) scope.agentlessSessionIds.add(sessionId);
    if (!validation.isValid) return;
    const { record } = validation;
    if (typeof sessionId === 'string' && !isLog) scope.addWriter(sessionId, record.agentId);
    switch (record.kind) {
      case 'event':
        addEvent(scope, record, snapshots);
        return;
      case 'log':
        addLog(scope, record);
        return;
      case 'status':
        addStatus(scope, record);
        return;
      case 'lost':
        if (record.sessionId !== undefined) return;
        scope.allProducerSessions = true;
        scope.openSessionAgentIds.add(record.agentId);
        return;
      case 'state-due':
      case 'session-arranged':
      case 'wake-rule-set':
        scope.sessionIds.add(record.sessionId);
        return;
      case 'reply-overdue':
        scope.sessionIds.add(record.sessionId);
        scope.addMessage(record.sessionId, record.messageId);
        return;
      case 'task-undelivered': {
        const { agentId, sessionId, id: taskId, runId } = record;
        scope.sessionIds.add(sessionId);
        scope.addTask({ agentId, sessionId, taskId, runId });
        return;
      }
      case 'marks-seen':
        for (const id of record.sessionIds) scope.sessionIds.add(id);
        return;
      case 'quarantine-removed':
        for (const id of record.counts.keys()) if (id !== null) scope.sessionIds.add(id);
    }
  });
  return scope;
}

function addStatus(scope: BatchScope, record: StatusRecord): void {
  const status = record.sessionId === undefined ? null : parseStatus(record);
  if (record.sessionId === undefined || status === null) return;
  const keys = scope.statusKeys.get(record.sessionId) ?? { status: new Set(), lists: new Set() };
  scope.statusKeys.set(record.sessionId, keys);
  keys.status.add(status.key);
  keys.lists.add(status.listsKey);
}

function addLog(scope: BatchScope, { agentId, log }: LogRecord): void {
  scope.logAgentIds.add(agentId);
  const insight = readInsight(log.insight);
  if (insight?.session?.id) scope.addName(insight.session.id, agentId);
  else if (insight?.session === null && isFailure(insight, log.level)) scope.openSessionAgentIds.add(agentId);
}

function addEvent(scope: BatchScope, { agentId, sessionId, event }: EventRecord, snapshots: { left: number }): void {
  for (const { id, text } of partsWithin(snapshots, event)) {
    scope.addPart(partKey(sessionId, id), { sessionId, id, length: text.length });
  }
  const { messageIds, settles } = obligationsTouchedBy(event);
  for (const id of messageIds) scope.addMessage(sessionId, id);
  if (settles) scope.obligationSessionIds.add(sessionId);
  if (affectsEveryTask(event)) scope.endedSessionIds.add(sessionId);
  if (startsWithoutCause(event)) scope.causelessSessionIds.add(sessionId);
  for (const { id, runId } of mentionedTasks(event)) scope.addTask({ agentId, sessionId, taskId: id, runId });
}
