import type { CommandType } from './commands';
import { fieldsOf, listOf, textOf } from './fields';
import { MAX_REFUSAL_REASON, MAX_SENTENCE } from './limits';
import { truncateText } from './text';

type Status = Record<string, unknown> | null;

/** Of what a runner sends, which may be anything, as much as a page has room for. */
const MOST_LIMITS = 50;
const MOST_COMMANDS = 500;

/** What can't be told or done of an agent, each in a sentence. */
export function limitsOf(status: Status): string[] {
  const told = listOf(status?.limits).flatMap((limit) => sentenceOf(limit) ?? []);
  return [...new Set(told)].slice(0, MOST_LIMITS);
}

/** What is wrong between a runner and its agent; null if nothing is, as far as it says. */
export function troubleOf(status: Status): string | null {
  return sentenceOf(status?.trouble);
}

/** Since when an agent can't be reached that its runner did not start, on the runner's clock; null while it can. */
export function outageOf(status: Status): { since: number; reason: string | null; wasAtWork: boolean } | null {
  const { since, reason, wasAtWork } = fieldsOf(status?.unreachable);
  if (typeof since !== 'number') return null;
  return { since, reason: sentenceOf(reason), wasAtWork: wasAtWork === true };
}

/** How the agent works: `Mode` and `Model`, in its own words. */
export function modeAndModelOf(status: Status): { name: string; text: string }[] {
  const ways = { Mode: sentenceOf(status?.mode), Model: sentenceOf(status?.model) };
  return Object.entries(ways).flatMap(([name, text]) => (text === null ? [] : { name, text }));
}

/** Something that people can have the agent do by a `/name` at the beginning of a message. */
export interface NamedCommand {
  /** Without the slash. */
  name: string;
  description: string;
}

/** In the runner's order, each once. */
export function commandsOf(status: Status): NamedCommand[] {
  const commands = new Map<string, NamedCommand>();
  for (const told of listOf(status?.commands)) {
    if (commands.size === MOST_COMMANDS) break;
    const { name: said, description } = fieldsOf(told);
    const name = (textOf(said) ?? '').replace(/^\//, '');
    // what has a space in it ends before that where it is written
    if (name === '' || /\s/.test(name) || name.length > MOST_NAME || commands.has(name)) continue;
    commands.set(name, { name, description: sentenceOf(description) ?? '' });
  }
  return [...commands.values()];
}
const MOST_NAME = 100;

function sentenceOf(said: unknown): string | null {
  const text = textOf(said)?.trim() ?? '';
  return text === '' ? null : truncateText(text, MAX_SENTENCE);
}

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
    reason: said === null ? unsaid(type, takes) : truncateText(said, MAX_REFUSAL_REASON),
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
