/** What is ticked or pressed is no field: no letter is meant for it. */
const FIELD = 'input:not([type=button], [type=checkbox], [type=radio]), textarea, select';

/** Whether a key belongs to a field, so that single-letter shortcuts keep out of it. */
export function isTyping({ target, key }: KeyboardEvent): boolean {
  if (!(target instanceof HTMLElement)) return false;
  // Arrows lead from one of several to the next.
  const isChosen = key.startsWith('Arrow') && target.matches('[type=radio]');
  return isChosen || target.isContentEditable || target.matches(FIELD);
}
