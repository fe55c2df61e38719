import type { RequestOption } from '@/lib/protocol/ag-ui';
import type { RequestItem } from '@/lib/protocol/read-models';

/** An answer to a permission; one with an empty id is ours and not the agent's. */
const YES: RequestOption = { id: '', label: 'Allow', kind: 'allow' };
export const NO: RequestOption = { id: '', label: 'Deny', kind: 'deny' };

/** The answers to offer: the agent's own in its order, and whatever it offers, a way to deny. */
export function offeredBy({ options }: Pick<RequestItem, 'options'>): readonly RequestOption[] {
  if (options === undefined) return [YES, NO];
  return options.some(({ kind }) => kind === 'deny') ? options : [...options, NO];
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
