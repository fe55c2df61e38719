import type { RequestOption } from '@interlude/protocol/ag-ui';
import type { RequestItem } from '@interlude/protocol/read-models';
import type { ActionState } from '@/components/live/actions';
import { quoted } from '@/components/ui/verbatim';

/** Whether an answer was given that has not failed. The request says so by itself once the server has told. */
export function isAnswerPending({ answer }: RequestItem, asked: ActionState | null): boolean {
  if (asked?.kind === 'sending') return true;
  if (asked?.kind === 'asked' && answer?.commandId !== asked.commandId) return true;
  return answer !== null && answer.state !== 'failed';
}

export function answerText(item: RequestItem): string {
  const chosen = chosenOption(item);
  const { behavior } = item.answer ?? {};
  const done = behavior === 'allow' ? 'Allowed' : behavior === 'deny' ? 'Denied' : 'Answered';
  return chosen === null ? done : `${done} ${quoted(chosen.label)}`;
}

const GONE: Record<NonNullable<RequestItem['outcome']>, string> = {
  allowed: 'Allowed elsewhere',
  denied: 'Denied elsewhere',
  answered: 'Answered elsewhere',
  expired: 'Expired',
  cancelled: 'Withdrawn',
  unknown: 'The agent went on without an answer from here',
};

/**
 * What to say to a reader who is at a request that can't be answered any more.
 *
 * @returns null if it went because this page answered it, which is no surprise to them
 */
export function closedText({ outcome }: Pick<RequestItem, 'outcome'>, asked: ActionState | null): string | null {
  if (outcome === null || asked?.kind === 'sending' || asked?.kind === 'asked') return null;
  return `${GONE[outcome]}. Nothing was sent.`;
}

/** An answer to a permission; one with an empty id is ours and not the agent's. */
const YES: RequestOption = { id: '', label: 'Allow', kind: 'allow' };
export const NO: RequestOption = { id: '', label: 'Deny', kind: 'deny' };

/** The answers to offer: what allows, then what denies, each in the agent's order. There is always a way to deny. */
export function offeredOptions({ options = [YES] }: Pick<RequestItem, 'options'>): readonly RequestOption[] {
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
export function optionText({ kind, label, isLasting }: RequestOption): { word: string; label: string | null } {
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

/**
 * What a request, and an answer to it, is known by on the page: its id, where it was opened, and what it asks for. One
 * that is opened again under the same id is another one.
 */
export function requestKey(item: Pick<RequestItem, 'id' | 'position' | 'digest'>): string {
  return `request:${item.id}:${item.position}:${item.digest ?? ''}`;
}

const expired = new WeakMap<RequestItem, RequestItem>();

/**
 * A request as it is once its time is over, even if nobody has said so: its agent may be gone, or slow to tell. While an
 * answer is on its way, that decides. For the same request it is always the same object.
 *
 * @param isOver whether its `expiresAt` has passed
 */
export function withExpiry(item: RequestItem, isOver: boolean, asked: ActionState | null): RequestItem {
  if (!isOver || item.outcome !== null || isAnswerPending(item, asked)) return item;
  const found = expired.get(item) ?? { ...item, outcome: 'expired' };
  expired.set(item, found);
  return found;
}
