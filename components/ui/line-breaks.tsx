import { Fragment, type ReactNode } from 'react';

/**
 * Letters that are joined, stacked, or told apart by a dictionary. Of a run of them, unlike one of Latin or Chinese, a
 * browser shapes all that is left anew for every line that it breaks it into.
 */
const SHAPED =
  /[\u0300-\u036f\u0590-\u1dff\u200b-\u200f\ua640-\uabff\ue000-\uf8ff\ufb00-\ufdff\ufe70-\ufeff\u{10000}-\u{1efff}]/u;
/** What belongs to the character before it, and the second half of one. */
const GOES_ON = /^[\p{M}\p{Cf}\p{Emoji_Modifier}\udc00-\udfff]/u;
/** About a line of them. */
const BETWEEN = 64;
/** Nothing has so many marks that means anything: they are taken apart, or they would hold up the page like a run. */
const MOST_MARKS = 64;

/** Whether a text has a run without a space that no line may be made of as it is; no text people write has one. */
export function needsBreaks(text: string): boolean {
  return longestRuns(text).some((run) => SHAPED.test(run));
}

/**
 * A text with places where a line may end, so that each line is shaped by itself. They are no part of the text: neither
 * read nor copied.
 *
 * @param isNeeded of a part of a text, whether the whole needs them: a run goes on through parts
 */
export function withBreaks(text: string, isNeeded = needsBreaks(text)): ReactNode {
  if (!isNeeded) return text;
  return stretches(text).map((stretch, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: stretches of a text have no other identity
    <Fragment key={at}>
      {(at > 0 || !GOES_ON.test(stretch)) && <wbr />}
      {stretch}
    </Fragment>
  ));
}

/** Joined they are the text. */
function stretches(text: string): string[] {
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
  while (at < run.length && at < from + MOST_MARKS && GOES_ON.test(run.slice(at, at + 2))) at += 1;
  // never between the two halves of a character
  return /^[\udc00-\udfff]/.test(run.charAt(at)) && /[\ud800-\udbff]$/.test(run.charAt(at - 1)) ? at + 1 : at;
}

const LONG = 500;

/**
 * The class a text needs that has a run of hundreds of signs without a space: none but kerning makes each of its signs
 * depend on its neighbours. A browser that must break such a run anew for every line holds up the page for runs of two
 * thousand, and takes minutes for longer ones.
 *
 * @returns undefined for every text people write
 */
export function longRunClass(text: string): string | undefined {
  return longestRuns(text).length > 0 ? '[font-kerning:none]' : undefined;
}

/** The parts of a text, each of hundreds of signs, within which no line ends by itself. A space that joins ends none. */
export function longestRuns(text: string): string[] {
  const runs: string[] = [];
  for (let from = 0; from + LONG <= text.length; ) {
    // From behind: of what people write, a sign or two of each five hundred are looked at.
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
