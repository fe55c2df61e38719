import type { AgUiEvent, InterludeMetadata, TurnTrigger } from '@/lib/protocol/ag-ui';
import { isObject } from '@/lib/protocol/fields';
import { MAX_NAMED } from '@/lib/protocol/limits';
import { idList } from './event-fields';

const NOTHING: InterludeMetadata = {};
const TRIGGER_KINDS = ['task', 'timer', 'agent', 'unknown'] as const;

/**
 * What an event says under `metadata.interlude`, as far as it says it in the shape agreed on. Whatever else stands there
 * is an agent's to write and nobody's to trust: it is stored, and not passed on.
 */
export function interludeOf(event: AgUiEvent): InterludeMetadata {
  const said: unknown = event.metadata?.interlude;
  if (!isObject(said)) return NOTHING;
  const trigger = triggerOf(said.trigger);
  return {
    ...(said.turn === 'user' || said.turn === 'between-run' ? { turn: said.turn } : {}),
    ...(trigger === null ? {} : { trigger }),
    ...list('userMessageIds', said),
    ...list('foldedTaskIds', said),
    ...list('replyTo', said),
    ...(said.whole === true ? { whole: true } : {}),
    ...text('taskRunId', said),
    ...text('clientId', said),
    ...text('reportedBy', said),
    ...text('assignedBy', said),
    ...snapshotOf(said.ofSnapshot),
    ...(said.delivery === 'queued' ? { delivery: 'queued' } : {}),
    ...senderOf(said.from),
  };
}

function triggerOf(said: unknown): TurnTrigger | null {
  if (!isObject(said)) return null;
  const kind = TRIGGER_KINDS.find((known) => known === said.kind) ?? 'unknown';
  return {
    kind,
    taskIds: idList(said.taskIds),
    ...byIndex('taskRunIds', said),
    ...byIndex('ofSessionIds', said),
  };
}

function byIndex<Key extends 'taskRunIds' | 'ofSessionIds'>(key: Key, said: Record<string, unknown>) {
  const ids = said[key];
  return Array.isArray(ids) ? { [key]: ids.slice(0, MAX_NAMED).map((id) => (typeof id === 'string' ? id : null)) } : {};
}

function senderOf(said: unknown): Pick<InterludeMetadata, 'from'> {
  if (!isObject(said) || typeof said.id !== 'string') return {};
  return said.kind === 'person' || said.kind === 'agent' ? { from: { kind: said.kind, id: said.id } } : {};
}

function snapshotOf(said: unknown): Pick<InterludeMetadata, 'ofSnapshot'> {
  return isObject(said) ? { ofSnapshot: { turnId: typeof said.turnId === 'string' ? said.turnId : null } } : {};
}

function list<Key extends 'userMessageIds' | 'foldedTaskIds' | 'replyTo'>(key: Key, said: Record<string, unknown>) {
  return Array.isArray(said[key]) ? { [key]: idList(said[key]) } : {};
}

function text<Key extends 'taskRunId' | 'clientId' | 'reportedBy' | 'assignedBy'>(
  key: Key,
  said: Record<string, unknown>,
) {
  return typeof said[key] === 'string' ? { [key]: said[key] } : {};
}
