import { inlineWork } from './inline-work';
import { WINDOW } from './parse';

/** What the texts of one page may cost where nothing can be put off: some thirty milliseconds of the worst there is. */
const MOST_WORK = 3_000_000;
/** What a paragraph costs beside its signs: elements to make and to write. */
const PARAGRAPH_WORK = 1_500;
const MOST_CHARACTERS = 64_000;

/** How much work a text may be at most, in signs looked at; found in one walk over it. */
export function markdownWork(text: string): number {
  let work = 0;
  for (const paragraph of text.split('\n\n')) {
    let lines = 1;
    for (let at = paragraph.indexOf('\n'); at !== -1; at = paragraph.indexOf('\n', at + 1)) lines += 1;
    work += PARAGRAPH_WORK + inlineWork(paragraph) + paragraph.length * lines;
  }
  return work;
}

/**
 * The texts that the server parses into the page, of those it shows: short ones, as far as they cost little together,
 * the newest first. The others come as they were written, and the browser parses them when it has time.
 *
 * @param texts the newest first
 */
export function textsParsedAtOnce(texts: Iterable<string>): ReadonlySet<string> {
  const parsed = new Set<string>();
  let work = 0;
  let characters = 0;
  for (const text of texts) {
    if (text.length > WINDOW) continue;
    work += markdownWork(text);
    characters += text.length;
    if (work > MOST_WORK || characters > MOST_CHARACTERS) break;
    parsed.add(text);
  }
  return parsed;
}
