import { Fragment, type ReactNode } from 'react';

/**
 * Characters that need complex shaping: joined, stacked or segmented by a dictionary. Unlike Latin or Chinese, a browser
 * reshapes the rest of such a run for every line.
 */
const SHAPED =
  /[\u0300-\u036f\u0590-\u1dff\u200b-\u200f\ua640-\uabff\ue000-\uf8ff\ufb00-\ufdff\ufe70-\ufeff\u{10000}-\u{1efff}]/u;
/** Combining characters, and the second half of a surrogate pair. */
const CONTINUES = /^[\p{M}\p{Cf}\p{Emoji_Modifier}\udc00-\udfff]/u;
/** Number of characters between two break opportunities, about a line. */
const BETWEEN = 64;
/** Longer sequences of marks are never meaningful, and are broken like any run. */
const MAX_MARKS = 64;

/** True if the text has a long run that needs complex shaping. Ordinary text has none. */
export function needsBreaks(text: string): boolean {
  return longestRuns(text).some((run) => SHAPED.test(run));
}

/**
 * Adds break opportunities, so that the browser shapes each line separately. They are neither read aloud nor copied.
 *
 * @param isNeeded pass `needsBreaks` of the whole text when rendering a part: a run may span parts
 */
export function withBreaks(text: string, isNeeded = needsBreaks(text)): ReactNode {
  if (!isNeeded) return text;
  return segments(text).map((segment, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: segments of a text have no other identity
    <Fragment key={index}>
      {(index > 0 || !CONTINUES.test(segment)) && <wbr />}
      {segment}
    </Fragment>
  ));
}

/** Longer texts would become hundreds of elements. */
const MAX_WITH_FLAGS = 1_000;

/** Keeps the flags of a command whole, such as `--dry-run`: browsers break lines after hyphens. */
export function withFlags(text: string): ReactNode {
  if (text.length > MAX_WITH_FLAGS) return text;
  return text.split(/(?<= )(-[\w-]{1,21})/).map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text have no other identity
      <span key={index} className="whitespace-nowrap">
        {part}
      </span>
    ),
  );
}

/** Parts that concatenate to the text. */
function segments(text: string): string[] {
  const found: string[] = [];
  let from = 0;
  for (const { 0: run, index } of text.matchAll(/[^ \t\n]+/g)) {
    for (let at = placeFrom(run, BETWEEN); at < run.length; at = placeFrom(run, at + BETWEEN)) {
      found.push(text.slice(from, index + at));
      from = index + at;
    }
  }
  return [...found, text.slice(from)];
}

function placeFrom(run: string, from: number): number {
  let at = from;
  while (at < run.length && at < from + MAX_MARKS && CONTINUES.test(run.slice(at, at + 2))) at += 1;
  // Don't split a surrogate pair.
  return /^[\udc00-\udfff]/.test(run.charAt(at)) && /[\ud800-\udbff]$/.test(run.charAt(at - 1)) ? at + 1 : at;
}

const LONG = 500;

/**
 * Disables kerning for text with hundreds of characters without a space. With kerning, a browser reshapes the rest of
 * such a run for every line: 2,000 characters cause a visible pause, longer runs take minutes.
 *
 * @returns undefined for ordinary text
 */
export function longRunClass(text: string): string | undefined {
  return longestRuns(text).length > 0 ? '[font-kerning:none]' : undefined;
}

/** Parts of a text, 500 characters each, without a line break opportunity. A no-break space doesn't count as one. */
export function longestRuns(text: string): string[] {
  const runs: string[] = [];
  for (let from = 0; from + LONG <= text.length; ) {
    // Searches backwards: ordinary text needs one or two checks for every 500 characters.
    let at = from + LONG - 1;
    while (at >= from && !isSpace(text.charCodeAt(at))) at -= 1;
    if (at < from) {
      runs.push(text.slice(from, from + LONG));
      from += LONG;
    } else from = at + 1;
  }
  return runs;
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x09 || code === 0x0a;
}
