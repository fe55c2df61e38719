/** What came of an act, in words: the refusals by their codes. */
const RESULT_WORD: Record<string, string> = {
  done: 'done',
  forbidden: 'refused: not for this role',
  not_found: 'refused: no such thing',
  conflict: 'refused: something stood against it',
  cross_origin: 'refused: from another site',
  too_many_requests: 'refused: too many at once',
  unsupported_encoding: 'refused: not readable',
};

export const RESULTS = Object.keys(RESULT_WORD);

export function resultWord(result: string): string {
  return RESULT_WORD[result] ?? `refused: ${result.replaceAll('_', ' ')}`;
}
