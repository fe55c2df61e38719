/** Signs that may begin something: the parser looks for the end of each through the rest of its paragraph. */
const MARKS = /[*_~`[\]<>!&\\|@:#]/g;

/** How much work what stands in one paragraph may be at most, in signs looked at; found in one walk over it. */
export function inlineWork(paragraph: string): number {
  return paragraph.length * (1 + (paragraph.match(MARKS)?.length ?? 0));
}
