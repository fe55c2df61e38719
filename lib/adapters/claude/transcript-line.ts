import { compact, type Fields, fieldsOf, listOf, textOf } from '@/lib/protocol/fields';

/** A line as the SDK would have sent it. */
export function sdkMessage({ type, uuid, message, agentId, toolDenialKind, permissionDecision }: Fields): Fields {
  const results = listOf(fieldsOf(message).content)
    .map(fieldsOf)
    .filter((block) => block.type === 'tool_result');
  // The line speaks of the one result it has. The SDK says the same, by the tool call's id.
  const fate = { non_execution_kind: toolDenialKind, permission_decision: permissionDecision };
  const meta = results.length === 1 ? [{ id: results[0]?.tool_use_id, ...fate }] : undefined;
  return compact({ type, uuid, message, agent_id: agentId, tool_result_meta: meta });
}

/** What a person or another agent said, rather than what the CLI writes for the model in a user's name. */
export function isTyped(line: Fields, text: string): boolean {
  if (text === '' || line.isMeta === true || line.isCompactSummary === true || line.isSidechain === true) return false;
  const { kind } = fieldsOf(line.origin);
  if (kind !== undefined && !['human', 'peer', 'channel', 'coordinator'].includes(`${kind}`)) return false;
  return !/^<(?:command-name|command-message|local-command|bash-|task-notification|system-reminder)/.test(text);
}

/** The text blocks of a transcript line. */
export function textIn(line: Fields): string {
  const { content } = fieldsOf(line.message);
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((block) => textOf(fieldsOf(block).text) ?? '')
    .join('');
}
