'use client';

import { useId, useMemo, useState } from 'react';
import { plainText } from '@/components/ui/ansi';
import type { RequestItem } from '@/lib/protocol/read-models';
import { answersOf, type Choice, type Question, questionsOf } from './questions';

const NOTHING: Choice = { labels: [], other: '' };

/** The questions with their options, and room for another answer. */
export function QuestionAnswer({ item, onAnswer }: { item: RequestItem; onAnswer: (body: object) => void }) {
  const questions = useMemo(() => questionsOf(item), [item]);
  const [choices, setChoices] = useState<Choice[]>(() => questions.map(() => NOTHING));
  const answers = answersOf(questions, choices);
  return (
    <form
      className="mt-1.5 pl-5"
      onSubmit={(event) => {
        event.preventDefault();
        if (answers !== null) onAnswer({ answers });
      }}
    >
      {questions.map((question, at) => (
        <QuestionFields
          key={question.text}
          question={question}
          // The card's own title says it already.
          titled={questions.length > 1 || question.text !== item.title}
          choice={choices[at] ?? NOTHING}
          onChoice={(choice) => setChoices(choices.with(at, choice))}
        />
      ))}
      <button
        type="submit"
        disabled={answers === null}
        className="mt-1.5 flex h-7 items-center rounded bg-ink px-3 font-medium text-ground text-xs hover:bg-ink-2 disabled:cursor-default disabled:bg-raised disabled:text-ink-3"
      >
        Answer
      </button>
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
    <fieldset className="mb-2">
      <legend className={titled ? 'py-0.5 font-medium text-xs' : 'sr-only'}>
        {question.header !== null && <span className="mr-2 text-ink-3">{plainText(question.header)}</span>}
        {plainText(question.text)}
        {multiSelect && <span className="ml-2 font-normal text-ink-3">several may be chosen</span>}
      </legend>
      {question.options.map(({ label, description }) => (
        <label key={label} className="flex items-baseline gap-2 py-[3px] text-xs">
          <input
            type={multiSelect ? 'checkbox' : 'radio'}
            name={name}
            checked={choice.labels.includes(label)}
            onChange={(event) => toggle(label, event.target.checked)}
            className="relative top-[2px] size-3.5 shrink-0 accent-accent"
          />
          <span className="min-w-0">
            {plainText(label)}
            {description !== null && <span className="ml-2 text-ink-3">{plainText(description)}</span>}
          </span>
        </label>
      ))}
      <input
        aria-label={question.options.length > 0 ? 'Another answer' : 'Answer'}
        placeholder={question.options.length > 0 ? 'Another answer' : 'Your answer'}
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
