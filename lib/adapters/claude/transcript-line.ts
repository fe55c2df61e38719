import { compact, type Fields, fieldsOf, listOf, textOf, textsOf } from '@/lib/protocol/fields';
import { PERSONS } from './attribution';

/** A line as the SDK would have sent it. */
export function sdkMessage({ type, uuid, message, agentId, toolDenialKind, permissionDecision }: Fields): Fields {
  const results = listOf(fieldsOf(message).content)
    .map(fieldsOf)
    .filter((block) => block.type === 'tool_result');
  // The line is about its only result. The SDK says the same by the id of the tool call.
  const fate = { non_execution_kind: toolDenialKind, permission_decision: permissionDecision };
  const meta = results.length === 1 ? [{ id: results[0]?.tool_use_id, ...fate }] : undefined;
  return compact({ type, uuid, message, agent_id: agentId, tool_result_meta: meta });
}

/** Whether a person or another agent said it, and not the CLI, which also writes to the model as the user. */
export function isTyped(line: Fields, text: string): boolean {
  if (text === '' || line.isMeta === true || line.isCompactSummary === true || line.isSidechain === true) return false;
  const { kind } = fieldsOf(line.origin);
  if (kind !== undefined && !PERSONS.has(kind)) return false;
  return !/^<(?:command-name|command-message|local-command|bash-|task-notification|system-reminder)/.test(text);
}

/** What a stop hook held the agent with, by a line that tells of it: the turn goes on. Null for every other line. */
export function stopFeedbackIn(line: Fields): string | null {
  const { content } = fieldsOf(line.message);
  const isBlock = line.type === 'user' && line.isMeta === true && `${content}`.startsWith('Stop hook feedback:');
  if (isBlock) return textIn(line);
  const { type, hookEvent, content: added } = fieldsOf(line.attachment);
  const isContext = line.type === 'attachment' && type === 'hook_additional_context' && hookEvent === 'Stop';
  return isContext && textOf(line.agentId) === null ? textsOf(added).join('\n') : null;
}

/** The text blocks of a transcript line. */
export function textIn(line: Fields): string {
  const { content } = fieldsOf(line.message);
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((block) => textOf(fieldsOf(block).text) ?? '')
    .join('');
}
