import type { CommandType } from './commands';
import { fieldsOf, isObject, listOf, textOf } from './fields';
import { MAX_REFUSAL_REASON, MAX_SENTENCE } from './limits';
import { truncateText } from './text';

type Status = Record<string, unknown> | null;

/** Bounds of what a page shows, because status records are untrusted. */
const MAX_LIMITS = 50;
const MAX_COMMANDS = 500;
const MAX_COMMAND_NAME = 100;

/** Limitations of the agent, each in a sentence. */
export function limitsOf(status: Status): string[] {
  const limits = listOf(status?.limits).flatMap((limit) => sentenceOf(limit) ?? []);
  return [...new Set(limits)].slice(0, MAX_LIMITS);
}

/** A reported problem between a runner and its agent; null if there is none. */
export function troubleOf(status: Status): string | null {
  return sentenceOf(status?.trouble);
}

/** An outage of an agent that its runner did not start; null while reachable. `since` is on the runner's clock. */
export function outageOf(status: Status): { since: number; reason: string | null; wasAtWork: boolean } | null {
  const { since, reason, wasAtWork } = fieldsOf(status?.unreachable);
  if (typeof since !== 'number') return null;
  return { since, reason: sentenceOf(reason), wasAtWork: wasAtWork === true };
}

/** Modes that agents report by their ids instead of names. */
const MODE_WORDS: ReadonlyMap<string, string> = new Map([
  ['default', 'Asks before acting'],
  ['acceptEdits', 'Accepts edits'],
  ['plan', 'Plans only'],
  ['bypassPermissions', 'Allows everything'],
  ['dontAsk', 'Denies what isn’t allowed'],
]);

/** The agent's `Mode`, in words if its id is known, and `Model`. */
export function modeAndModelOf(status: Status): { name: string; text: string }[] {
  const mode = sentenceOf(status?.mode);
  const words = { Mode: mode && (MODE_WORDS.get(mode) ?? mode), Model: sentenceOf(status?.model) };
  return Object.entries(words).flatMap(([name, text]) => (text === null ? [] : { name, text }));
}

/** A command that people give by starting a message with `/name`. */
export interface NamedCommand {
  /** Without the slash. */
  name: string;
  description: string;
}

/** The agent's commands without duplicates, in the runner's order. */
export function commandsOf(status: Status): NamedCommand[] {
  const commands = new Map<string, NamedCommand>();
  for (const entry of listOf(status?.commands)) {
    if (commands.size === MAX_COMMANDS) break;
    const { name: given, description } = fieldsOf(entry);
    const name = (textOf(given) ?? '').replace(/^\//, '');
    // In a message, the name ends at the first space.
    if (name === '' || /\s/.test(name) || name.length > MAX_COMMAND_NAME || commands.has(name)) continue;
    commands.set(name, { name, description: sentenceOf(description) ?? '' });
  }
  return [...commands.values()];
}

function sentenceOf(value: unknown): string | null {
  const text = textOf(value)?.trim() ?? '';
  return text === '' ? null : truncateText(text, MAX_SENTENCE);
}

/**
 * Why a runner does not support a command, as part of a sentence, and another agent that supports it. From `takes`,
 * `takesNot` and `instead` of a status record (agent-status.ts). Read without a schema, because browsers don't load
 * zod.
 */
export interface Refusal {
  reason: string;
  instead: { agentId: string; sessionId: string } | null;
}

/** @param status untrusted, as the runner sent it */
export function refusalOf(status: Record<string, unknown> | null, type: CommandType): Refusal | null {
  const supported = status?.takes;
  if (!Array.isArray(supported) || supported.includes(type)) return null;
  const reason = fieldOf(status?.takesNot, type);
  const agentId = fieldOf(status?.instead, 'agentId');
  const sessionId = fieldOf(status?.instead, 'sessionId');
  return {
    reason: reason === null ? defaultReason(type, supported) : truncateText(reason, MAX_REFUSAL_REASON),
    instead: agentId === null || sessionId === null ? null : { agentId, sessionId },
  };
}

function defaultReason(type: CommandType, supported: readonly unknown[]): string {
  const isAnswer = type === 'question.answer' || type === 'permission.decision';
  return isAnswer && supported.includes('message') ? 'answer with a message' : 'its runner does not support this';
}

function fieldOf(value: unknown, name: string): string | null {
  const field = isObject(value) && Object.hasOwn(value, name) ? value[name] : null;
  return typeof field === 'string' && field.trim() !== '' ? field : null;
}
