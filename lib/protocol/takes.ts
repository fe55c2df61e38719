import type { CommandType } from './commands';
import { cutText } from './cut-text';
import { MAX_REFUSAL_REASON } from './limits';

/**
 * Why a runner does not act on a command, as part of a sentence, and who might: from `takes`, `takesNot` and `instead`
 * of a status record. Read by hand, for the browser, which has no schemas. @see agent-status.ts
 */
export interface Refusal {
  reason: string;
  instead: { agentId: string; sessionId: string } | null;
}

/** @param status as the agent's runner sent it: nothing of it is certain */
export function refusalOf(status: Record<string, unknown> | null, type: CommandType): Refusal | null {
  const takes = status?.takes;
  if (!Array.isArray(takes) || takes.includes(type)) return null;
  const said = fieldOf(status?.takesNot, type);
  return {
    reason: said === null ? unsaid(type, takes) : cutText(said, MAX_REFUSAL_REASON),
    instead: insteadOf(status?.instead),
  };
}

function unsaid(type: CommandType, takes: readonly unknown[]): string {
  const isAnswer = type === 'question.answer' || type === 'permission.decision';
  return isAnswer && takes.includes('message') ? 'answer with a message' : 'its runner does not act on this';
}

function insteadOf(instead: unknown): Refusal['instead'] {
  const agentId = fieldOf(instead, 'agentId');
  const sessionId = fieldOf(instead, 'sessionId');
  return agentId === null || sessionId === null ? null : { agentId, sessionId };
}

function fieldOf(value: unknown, name: string): string | null {
  const field =
    typeof value === 'object' && value !== null && Object.hasOwn(value, name) ? Reflect.get(value, name) : null;
  return typeof field === 'string' && field.trim() !== '' ? field : null;
}
