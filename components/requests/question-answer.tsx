'use client';

import { fieldsOf, listOf, textOf } from '@interlude/protocol/fields';
import type { RequestItem } from '@interlude/protocol/read-models';
import { type Ref, useId, useMemo } from 'react';
import { NAME_CHARACTERS, Words } from '@/components/ui/name';
import { VerbatimLines } from '@/components/ui/verbatim-text';
import { nameElements } from './input-parts';

const NOTHING: Choice = { labels: [], other: '' };

/**
 * Form with questions, their options and free text.
 *
 * @param settled see `useSettled`
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
  const isAmbiguous = useMemo(() => hasDuplicates(questions), [questions]);
  const shown = useMemo(() => displayable(questions), [questions]);
  const isTooLong = useMemo(
    () => shown.length < questions.length || isLonger(questions, MAX_CHARACTERS),
    [questions, shown],
  );
  const isOff = answers === null || isTooLong || !settled;
  return (
    <form
      data-question=""
      className="mt-1.5 pl-5"
      onSubmit={(event) => {
        event.preventDefault();
        if (!isOff) onAnswer({ answers });
      }}
    >
      {shown.map((question, index) => (
        <QuestionFields
          // biome-ignore lint/suspicious/noArrayIndexKey: texts may repeat, and the order is fixed
          key={index}
          question={question}
          before={shown.slice(0, index).reduce((sum, { options }) => sum + options.length, 0)}
          // The card's title shows a single question already, unless it was truncated.
          titled={questions.length > 1 || question.text !== item.title || question.text.length > NAME_CHARACTERS}
          choice={choices[index] ?? NOTHING}
          onChoice={(choice) =>
            onChoices(questions.map((_, other) => (other === index ? choice : (choices[other] ?? NOTHING))))
          }
        />
      ))}
      {shown.length === 0 && questions[0] !== undefined && (
        <p className="py-0.5 text-xs">
          <VerbatimLines text={questions[0].text} />
        </p>
      )}
      {isAmbiguous && (
        <p className="py-0.5 text-waiting text-xs">
          Two of these questions are identical, so their answers would be ambiguous. Answer in the agent’s own
          interface.
        </p>
      )}
      {isTooLong && (
        <p className="py-0.5 text-waiting text-xs">
          This is too long to show in full. Answer in the agent’s own interface.
        </p>
      )}
      {/* Sticky: stays visible while a pinned card scrolls. */}
      <div
        ref={row}
        className="flex items-baseline gap-x-3 text-2xs not-in-data-pins:w-fit in-data-pins:sticky in-data-pins:bottom-0 in-data-pins:bg-waiting-soft in-data-pins:pb-2"
      >
        <button
          type="submit"
          aria-disabled={isOff}
          disabled={answers === null || isTooLong}
          className="mt-1.5 flex h-7 items-center rounded bg-ink px-3 font-medium text-ground text-xs transition-colors duration-300 hover:bg-ink-2 disabled:cursor-default disabled:bg-raised disabled:text-ink-3"
        >
          Answer
        </button>
        {answers !== null && questions.some(({ options }) => options.length > 0) && <KeyOf name="Enter" />}
      </div>
    </form>
  );
}

function QuestionFields(props: {
  question: Question;
  /** Number of options of the questions before. */
  before: number;
  titled: boolean;
  choice: Choice;
  onChoice: (choice: Choice) => void;
}) {
  const { question, before, titled, choice, onChoice } = props;
  const name = useId();
  const { multiSelect } = question;
  const toggle = (label: string, checked: boolean) => {
    const others = multiSelect ? choice.labels.filter((one) => one !== label) : [];
    // A single choice is either an option or free text.
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
        {multiSelect && <span className="ml-2 font-normal text-ink-3">choose any number</span>}
      </legend>
      {question.options.map(({ label, description }, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: texts may repeat, and the order is fixed
        <label key={index} className="flex items-baseline gap-2 py-[3px] text-xs">
          <input
            type={multiSelect ? 'checkbox' : 'radio'}
            name={name}
            data-option={before + index + 1}
            checked={choice.labels.includes(label)}
            onChange={(event) => toggle(label, event.target.checked)}
            className="relative top-[2px] size-3.5 shrink-0 accent-accent"
          />
          {before + index < MAX_DIGIT && <KeyOf name={`${before + index + 1}`} />}
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
        className="h-7 w-full border-line-strong border-b bg-transparent text-xs outline-none placeholder:text-ink-3 focus:border-accent"
      />
    </fieldset>
  );
}

/** Options with a key. */
const MAX_DIGIT = 9;

/** A key, visible while it works. */
function KeyOf({ name }: { name: string }) {
  return (
    <span
      data-key={name}
      aria-hidden="true"
      className="key invisible font-mono text-2xs text-ink-3 group-focus-within/answer:visible in-[dialog]:visible"
    />
  );
}

/** Questions and options are shown in full. If one is longer, the form can't be answered. */
const MAX_CHARACTERS = 10_000;

/** Labels are unlimited here, because `displayable` limits those of all questions together. */
function Whole({ text }: { text: string }) {
  return (
    <bdi>
      <Words text={text} max={MAX_CHARACTERS} signs={Number.POSITIVE_INFINITY} strict />
    </bdi>
  );
}

interface Question {
  /** Key of its answer. */
  text: string;
  header: string | null;
  options: { label: string; description: string | null }[];
  multiSelect: boolean;
}

/**
 * Questions in the format of Claude Code's AskUserQuestion. Any other input becomes one free-text question, the title.
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
  /** Free text, chosen if not blank. */
  other: string;
}

/** @returns answers in wire format; null while one is missing */
export function answersOf(
  questions: readonly Question[],
  choices: readonly Choice[],
): Record<string, string | string[]> | null {
  if (hasDuplicates(questions)) return null;
  const answers: [string, string | string[]][] = [];
  for (const [index, question] of questions.entries()) {
    const { labels = [], other = '' } = choices[index] ?? {};
    const chosen = [...labels, ...(other.trim() === '' ? [] : [other.trim()])];
    if (chosen.length === 0) return null;
    answers.push([question.text, question.multiSelect ? chosen : (chosen.at(-1) as string)]);
  }
  // `fromEntries`, because assignment would fail for a question called `__proto__`.
  return Object.fromEntries(answers);
}

/** True if two questions have the same text, which is the key of their answers. */
export function hasDuplicates(questions: readonly Question[]): boolean {
  return new Set(questions.map(({ text }) => text)).size < questions.length;
}

/** Maximum number of questions and options. */
const MAX_FIELDS = 200;
/** Maximum number of characters in them. */
const MAX_TOGETHER = 20_000;
/** Maximum number of label elements in them. */
const MAX_SIGNS = 1_000;

/** @returns the leading questions that fit the limits */
export function displayable(questions: readonly Question[]): readonly Question[] {
  let fields = 0;
  let characters = 0;
  let signs = 0;
  const beyond = questions.findIndex((question) => {
    fields += 1 + question.options.length;
    if (fields > MAX_FIELDS) return true;
    return textsOf(question).some((text) => {
      characters += text.length;
      if (characters > MAX_TOGETHER) return true;
      signs += nameElements(text);
      return signs > MAX_SIGNS;
    });
  });
  return beyond < 0 ? questions : questions.slice(0, beyond);
}

/** All texts of a question as shown. */
function textsOf({ text, header, options }: Question): string[] {
  const choices = options.flatMap(({ label, description }) => [label, description ?? '']);
  return [text, header?.slice(0, NAME_CHARACTERS) ?? '', ...choices];
}

/** True if a question or an option is longer than `characters`. */
export function isLonger(questions: readonly Question[], characters: number): boolean {
  return questions.some((question) => textsOf(question).some((text) => text.length > characters));
}
