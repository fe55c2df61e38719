import { cutText } from './cut-text';
import { fieldsOf, listOf, textOf } from './fields';
import { MAX_SENTENCE } from './limits';

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
export function waysOf(status: Status): { name: string; text: string }[] {
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
  return text === '' ? null : cutText(text, MAX_SENTENCE);
}
