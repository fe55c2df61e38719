'use client';

import { fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import type { RequestItem } from '@interlude/protocol/read-models';
import { type Ref, useId, useMemo } from 'react';
import { NAME_CHARACTERS, nameElements, Words } from '@/components/ui/name';
import { VerbatimLines } from '@/components/ui/verbatim-text';

const NOTHING: Choice = { labels: [], other: '' };

/**
 * The questions with their options, and room for another answer.
 *
 * @param settled whether a press can be meant for this form; before that it takes none
 */
export function QuestionAnswer(props: {
  item: RequestItem;
  row: Ref<HTMLDivElement>;
  settled: boolean;
  choices: readonly Choice[];
  onChoices: (choices: readonly Choice[]) => void;
  onAnswer: (body: object) => void;
}) {
  const { item, row, settled, choices, onChoices, onAnswer } = props;
  const questions = useMemo(() => questionsOf(item), [item]);
  const answers = answersOf(questions, choices);
  const twins = useMemo(() => hasDuplicates(questions), [questions]);
  const shown = useMemo(() => displayable(questions), [questions]);
  const isTooLong = useMemo(
    () => shown.length < questions.length || isLonger(questions, MOST_CHARACTERS),
    [questions, shown],
  );
  const isOff = answers === null || isTooLong || !settled;
  return (
    <form
      className="mt-1.5 pl-5"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isOff) onAnswer({ answers });
      }}
    >
      {shown.map((question, at) => (
        <QuestionFields
          // biome-ignore lint/suspicious/noArrayIndexKey: two may have the same words, and none is ever moved
          key={at}
          question={question}
          // The card's own title says it already, where it says it whole.
          titled={questions.length > 1 || question.text !== item.title || question.text.length > NAME_CHARACTERS}
          choice={choices[at] ?? NOTHING}
          onChoice={(choice) =>
            onChoices(questions.map((_, other) => (other === at ? choice : (choices[other] ?? NOTHING))))
          }
        />
      ))}
      {shown.length === 0 && questions[0] !== undefined && (
        <p className="py-0.5 text-xs">
          <VerbatimLines text={questions[0].text} />
        </p>
      )}
      {twins && (
        <p className="py-0.5 text-waiting text-xs">
          Two of these have the same words: an answer here could not tell them apart. Answer where the agent runs.
        </p>
      )}
      {isTooLong && (
        <p className="py-0.5 text-waiting text-xs">This is too long to be shown whole. Answer where the agent runs.</p>
      )}
      <div ref={row} className="w-fit">
        <button
          type="submit"
          aria-disabled={isOff}
          disabled={answers === null || isTooLong}
          className="mt-1.5 flex h-7 items-center rounded bg-ink px-3 font-medium text-ground text-xs transition-colors duration-300 hover:bg-ink-2 aria-disabled:cursor-default aria-disabled:bg-raised aria-disabled:text-ink-3"
        >
          Answer
        </button>
      </div>
    </form>
  );
}

function QuestionFields(props: {
  question: Question;
  titled: boolean;
  choice: Choice;
  onChoice: (choice: Choice) => void;
}) {
  const { question, titled, choice, onChoice } = props;
  const name = useId();
  const { multiSelect } = question;
  const toggle = (label: string, checked: boolean) => {
    const others = multiSelect ? choice.labels.filter((one) => one !== label) : [];
    // Of one choice only one can stand, written or ticked.
    onChoice({ labels: checked ? [...others, label] : others, other: multiSelect ? choice.other : '' });
  };
  return (
    <fieldset className="mb-2 [overflow-wrap:anywhere]">
      <legend className={titled ? 'py-0.5 font-medium text-xs' : 'sr-only'}>
        {question.header !== null && (
          <span className="mr-2 text-ink-3">
            <bdi>
              <Words text={question.header} strict />
            </bdi>
          </span>
        )}
        <Whole text={question.text} />
        {multiSelect && <span className="ml-2 font-normal text-ink-3">several may be chosen</span>}
      </legend>
      {question.options.map(({ label, description }, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: two may have the same words, and none is ever moved
        <label key={at} className="flex items-baseline gap-2 py-[3px] text-xs">
          <input
            type={multiSelect ? 'checkbox' : 'radio'}
            name={name}
            checked={choice.labels.includes(label)}
            onChange={(event) => toggle(label, event.target.checked)}
            className="relative top-[2px] size-3.5 shrink-0 accent-accent"
          />
          <span className="min-w-0">
            <Whole text={label} />
            {description !== null && (
              <span className="ml-2 text-ink-3">
                <Whole text={description} />
              </span>
            )}
          </span>
        </label>
      ))}
      <input
        aria-label={question.options.length > 0 ? 'Another answer' : 'Answer'}
        placeholder={question.options.length > 0 ? 'Another answer' : 'Your answer'}
        dir="auto"
        value={choice.other}
        onChange={(event) => {
          const other = event.target.value;
          onChoice({ labels: multiSelect || other.trim() === '' ? choice.labels : [], other });
        }}
        className="h-7 w-full max-w-prose border-line-strong border-b bg-transparent text-xs outline-none placeholder:text-ink-3 focus:border-accent"
      />
    </fieldset>
  );
}

/** What is answered and chosen is shown whole, as far as anybody reads. */
const MOST_CHARACTERS = 10_000;

/** Its signs are bounded with those of all others. */
function Whole({ text }: { text: string }) {
  return (
    <bdi>
      <Words text={text} most={MOST_CHARACTERS} signs={Number.POSITIVE_INFINITY} strict />
    </bdi>
  );
}

interface Question {
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
  if (hasDuplicates(questions)) return null;
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
export function hasDuplicates(questions: readonly Question[]): boolean {
  return new Set(questions.map(({ text }) => text)).size < questions.length;
}

/** Most questions and options that are shown of one request. */
const MOST_FIELDS = 200;
/** Most characters of all of them. */
const MOST_TOGETHER = 20_000;
/** Most elements that their signs are. */
const MOST_SIGNS = 1_000;

/** @returns as many questions as are shown; not all where they and their options are very many, or very long */
export function displayable(questions: readonly Question[]): readonly Question[] {
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
