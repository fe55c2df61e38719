import type { RequestOption } from '@interlude/protocol/ag-ui';
import type { RequestItem } from '@interlude/protocol/read-models';

/** An answer to a permission; one with an empty id is ours and not the agent's. */
const YES: RequestOption = { id: '', label: 'Allow', kind: 'allow' };
export const NO: RequestOption = { id: '', label: 'Deny', kind: 'deny' };

/** The answers to offer: what allows, then what denies, each in the agent's order. There is always a way to deny. */
export function offeredBy({ options = [YES] }: Pick<RequestItem, 'options'>): readonly RequestOption[] {
  const allowing = options.filter(({ kind }) => kind === 'allow');
  const denying = options.filter(({ kind }) => kind === 'deny');
  return [...allowing, ...(denying.length > 0 ? denying : [NO])];
}

/**
 * An answer in words: ours for what it does, then the agent's label for it. A label says what the agent likes, so it never
 * stands for the decision.
 *
 * @returns `label`: null where it would say the same again
 */
export function wordsFor({ kind, label, isLasting }: RequestOption): { word: string; label: string | null } {
  const word = `${kind === 'allow' ? 'Allow' : 'Deny'}${isLasting ? ' from now on' : ''}`;
  return { word, label: label === word ? null : label };
}

/** What is sent for it. */
export function decisionOf({ id, kind }: RequestOption): { behavior: 'allow' | 'deny'; optionId?: string } {
  return { behavior: kind, ...(id === '' ? {} : { optionId: id }) };
}

/** The option that was chosen here, while what became of the request agrees with it. */
export function chosenOption({ options, answer, outcome }: RequestItem): RequestOption | null {
  const chosen = options?.find(({ id }) => id === answer?.optionId);
  if (chosen === undefined || answer?.state === 'failed') return null;
  return outcome === null || outcome === (chosen.kind === 'allow' ? 'allowed' : 'denied') ? chosen : null;
}
