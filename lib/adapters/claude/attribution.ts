import type { TurnTrigger } from '@/lib/protocol/ag-ui';
import { type Fields, fieldsOf, textOf, textsOf } from '@/lib/protocol/fields';

/** Origins of user messages that are shown as such. @see SDKMessageOrigin */
export const PERSONS: ReadonlySet<unknown> = new Set(['human', 'peer', 'channel', 'coordinator']);

/** The user messages that a message of the agent names. */
export function userMessageIds(message: Fields): string[] {
  const ids = textsOf(message.user_message_uuids);
  const last = textOf(message.user_message_uuid);
  return ids.length > 0 || last === null ? ids : [last];
}

/** The run of the task whose end caused the turn. */
export function originRun(result: Fields): string | null {
  return textOf(fieldsOf(result.origin).runId);
}

/**
 * What started a turn that neither a person nor a task started.
 * @see SDKMessageOrigin, Agent SDK 0.3.329
 */
export function otherTrigger(result: Fields): TurnTrigger {
  const { kind, subkind } = fieldsOf(result.origin);
  if (subkind === 'scheduled-trigger') return { kind: 'timer', taskIds: [] };
  const byAgent = kind === 'peer' || kind === 'coordinator' || kind === 'observer' || subkind === 'peer-send-message';
  return { kind: byAgent ? 'agent' : 'unknown', taskIds: [] };
}
