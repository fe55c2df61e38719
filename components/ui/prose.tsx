'use client';

import { clsx } from 'clsx';
import { useMemo, useState } from 'react';
import { longRunClass, withBreaks } from './line-breaks';
import { endOfFirstPart } from './truncate';
import { UnfoldButton } from './unfold';
import { bracketed, INVISIBLE, labelOf } from './verbatim';

/** Each of its lines runs, and is aligned, as its own script does. */
const AS_TYPED = 'whitespace-pre-wrap text-start [overflow-wrap:anywhere] [unicode-bidi:plaintext]';

/** What is added with each asking. */
const STEP = 10_000;

/** A text as it was written: its beginning, and the rest in steps that a page lays out without a pause. */
export function LongText(props: { text: string; most: number; className?: string }) {
  const { text, most, className } = props;
  const end = useMemo(() => endOfFirstProse(text, most), [text, most]);
  const shown = useMemo(() => proseText(text.slice(0, end)), [text, end]);
  return (
    <>
      <p dir="auto" className={clsx(AS_TYPED, longRunClass(shown), className)}>
        {withBreaks(shown)}
      </p>
      <MoreText text={text} from={end} {...(className === undefined ? {} : { className })} />
    </>
  );
}

/** What of a text follows the part that is shown, in steps, as it was written. */
export function MoreText({ text, from, className }: { text: string; from: number; className?: string }) {
  const [steps, setSteps] = useState(0);
  const parts = useMemo(() => partsOf(text, from, steps), [text, from, steps]);
  const left = text.length - (parts.at(-1)?.end ?? from);
  return (
    <>
      {parts.map(({ end, shown }) => (
        <p key={end} dir="auto" className={clsx(AS_TYPED, longRunClass(shown), className)}>
          {withBreaks(shown)}
        </p>
      ))}
      {left > 0 && (
        <UnfoldButton onPress={() => setSteps(steps + 1)} className="my-1 block text-2xs text-ink-3">
          … {left.toLocaleString('en')} more characters
        </UnfoldButton>
      )}
    </>
  );
}

function partsOf(text: string, from: number, count: number): { end: number; shown: string }[] {
  const parts: { end: number; shown: string }[] = [];
  let at = from;
  for (let step = 0; step < count && at < text.length; step++) {
    const rest = text.slice(at, at + STEP + 1);
    const end = at + endOfFirstProse(rest, STEP);
    parts.push({ end, shown: proseText(text.slice(at, end)) });
    at = end;
  }
  return parts;
}

/**
 * What hides text, or acts on what stands around it. Line breaks and tabs stay, and joiners and selectors, which words
 * and emoji are made of.
 */
const HIDES = new RegExp(`((?![\\t\\n\\r\\u200c\\u200d\\p{Variation_Selector}])[${INVISIBLE}])\\1*`, 'gu');

/** What ends a line. A lone return of the carriage does, too: what stands before it stays in sight. */
const LINE_BREAKS = ['\r\n', '\r', '\u2028', '\u2029'] as const;

/** More words for what hides than this, in the part that is shown at first, would hold up the page. */
const MOST_HIDDEN = 1_000;

/**
 * What people and agents say to each other, to be read: all of it as it was written, with words for what could not be
 * seen (`⟨ESC⟩`), so that nothing is hidden by it. Colours are no exception: what looks like one has room for words.
 */
export function proseText(text: string): string {
  return LINE_BREAKS.reduce((lines, lineBreak) => lines.split(lineBreak).join('\n'), text)
    .replace(HIDES, (run) => bracketed(labelOf(run)))
    .toWellFormed();
}

/** Where the part of a text ends that is shown at first: at most so long, and with a bounded number of such words. */
export function endOfFirstProse(text: string, most: number): number {
  const end = endOfFirstPart(text, most);
  let left = MOST_HIDDEN;
  for (const { index } of text.slice(0, end).matchAll(HIDES)) if (--left < 0) return index;
  return end;
}
