'use client';

import { clsx } from 'clsx';
import { useMemo, useState } from 'react';
import { longRunClass, withBreaks } from './line-breaks';
import { endOfFirstPart } from './truncate';
import { UnfoldButton } from './unfold';
import { bracketed, INVISIBLE, labelOf } from './verbatim';

/** Direction and alignment of each line follow its script. */
const AS_TYPED = 'whitespace-pre-wrap text-start [overflow-wrap:anywhere] [unicode-bidi:plaintext]';

/** Number of characters that one press adds. */
const STEP = 10_000;

/** Plain text: its beginning, then the rest in steps that the browser lays out without a pause. */
export function LongText(props: { text: string; max: number; className?: string }) {
  const { text, max, className } = props;
  const end = useMemo(() => endOfFirstProse(text, max), [text, max]);
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

/** A plain text from `from` on, in steps. */
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
 * Invisible characters that hide text or affect the text around them. Excludes line breaks and tabs, and the joiners and
 * variation selectors that words and emoji need.
 */
const HIDES = new RegExp(`((?![\\t\\n\\r\\u200c\\u200d\\p{Variation_Selector}])[${INVISIBLE}])\\1*`, 'gu');

/** Normalized to line feeds, including a lone carriage return, which would hide the text before it. */
const LINE_BREAKS = ['\r\n', '\r', '\u2028', '\u2029'] as const;

/** Limit of labels in the part shown first: more would freeze the page. */
const MAX_HIDDEN = 1_000;

/**
 * Message text with invisible characters replaced by labels such as `⟨ESC⟩`, so that they can hide nothing. That includes
 * colour escapes, which could contain hidden words.
 */
export function proseText(text: string): string {
  return LINE_BREAKS.reduce((lines, lineBreak) => lines.split(lineBreak).join('\n'), text)
    .replace(HIDES, (run) => bracketed(labelOf(run)))
    .toWellFormed();
}

/** Length of the part shown first: at most `max` characters and `MAX_HIDDEN` labels. */
export function endOfFirstProse(text: string, max: number): number {
  const end = endOfFirstPart(text, max);
  let left = MAX_HIDDEN;
  for (const { index } of text.slice(0, end).matchAll(HIDES)) if (--left < 0) return index;
  return end;
}
