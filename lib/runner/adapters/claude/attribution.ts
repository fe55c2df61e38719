import type { TurnTrigger } from '@interlude/protocol/ag-ui';
import { compact, type Fields, fieldsOf, numberOf, textOf, textsOf } from '@interlude/protocol/fields';

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
  const { kind, subkind, reason, setAt } = fieldsOf(result.origin);
  if (subkind === 'scheduled-trigger') {
    return {
      kind: 'timer',
      taskIds: [],
      ...compact({ reason: textOf(reason) ?? undefined, setAt: numberOf(setAt) ?? undefined }),
    };
  }
  const byAgent = kind === 'peer' || kind === 'coordinator' || kind === 'observer' || subkind === 'peer-send-message';
  return { kind: byAgent ? 'agent' : 'unknown', taskIds: [] };
}
