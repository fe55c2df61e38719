import { fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import type { RequestItem } from '@interlude/protocol/read-models';
import { NAME_CHARACTERS, nameElements } from '@/components/ui/name';

export interface Question {
  /** By which its answer is known. */
  text: string;
  header: string | null;
  options: { label: string; description: string | null }[];
  multiSelect: boolean;
}

/**
 * What a question asks, in the shape Claude Code's AskUserQuestion has; of anything else, its title with free text.
 */
export function questionsOf(item: Pick<RequestItem, 'title' | 'input'>): Question[] {
  const known = listOf(fieldsOf(item.input).questions).flatMap(questionOf);
  return known.length > 0 ? known : [{ text: item.title, header: null, options: [], multiSelect: false }];
}

function questionOf(value: unknown): Question[] {
  const { question, header, options, multiSelect } = fieldsOf(value);
  const text = textOf(question);
  if (text === null) return [];
  const choices = listOf(options).flatMap(optionOf);
  return [{ text, header: textOf(header), options: choices, multiSelect: multiSelect === true }];
}

function optionOf(value: unknown): Question['options'] {
  if (typeof value === 'string') return [{ label: value, description: null }];
  const { label, description } = fieldsOf(value);
  if (typeof label !== 'string') return [];
  return [{ label, description: typeof description === 'string' ? description : null }];
}

export interface Choice {
  labels: string[];
  /** Written freely; it is chosen where it is not empty. */
  other: string;
}

/** @returns the answers as the wire has them, null while a question is left open */
export function answersOf(
  questions: readonly Question[],
  choices: readonly Choice[],
): Record<string, string | string[]> | null {
  if (hasTwins(questions)) return null;
  const answers: [string, string | string[]][] = [];
  for (const [at, question] of questions.entries()) {
    const { labels = [], other = '' } = choices[at] ?? {};
    const said = [...labels, ...(other.trim() === '' ? [] : [other.trim()])];
    if (said.length === 0) return null;
    answers.push([question.text, question.multiSelect ? said : (said.at(-1) as string)]);
  }
  // Not by assignment: a question may have any words, those of a prototype too.
  return Object.fromEntries(answers);
}

/** An answer is known by the words of its question, so of two alike one would get the other's. */
export function hasTwins(questions: readonly Question[]): boolean {
  return new Set(questions.map(({ text }) => text)).size < questions.length;
}

/** Most questions and options that are shown of one request. */
const MOST_FIELDS = 200;
/** Most characters of all of them. */
const MOST_TOGETHER = 20_000;
/** Most elements that their signs are. */
const MOST_SIGNS = 1_000;

/** @returns as many questions as are shown; not all where they and their options are very many, or very long */
export function shownOf(questions: readonly Question[]): readonly Question[] {
  let fields = 0;
  let characters = 0;
  let signs = 0;
  const beyond = questions.findIndex((question) => {
    fields += 1 + question.options.length;
    if (fields > MOST_FIELDS) return true;
    return textsOf(question).some((text) => {
      characters += text.length;
      if (characters > MOST_TOGETHER) return true;
      signs += nameElements(text);
      return signs > MOST_SIGNS;
    });
  });
  return beyond < 0 ? questions : questions.slice(0, beyond);
}

/** What is shown of a question. */
function textsOf({ text, header, options }: Question): string[] {
  const choices = options.flatMap(({ label, description }) => [label, description ?? '']);
  return [text, header?.slice(0, NAME_CHARACTERS) ?? '', ...choices];
}

/** Whether a question, or what may be chosen, has more characters than that. */
export function isLonger(questions: readonly Question[], characters: number): boolean {
  return questions.some((question) => textsOf(question).some((text) => text.length > characters));
}
