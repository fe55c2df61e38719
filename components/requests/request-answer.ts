import type { RequestItem } from '@interlude/protocol/read-models';
import type { ActionState } from '@/components/live/actions';
import { quoted } from '@/components/ui/verbatim';
import { chosenOption } from './offered';

/** Whether an answer was given that has not failed. The request says so by itself once the server has told. */
export function isUnderWay({ answer }: RequestItem, asked: ActionState | null): boolean {
  if (asked?.kind === 'sending') return true;
  if (asked?.kind === 'asked' && answer?.commandId !== asked.commandId) return true;
  return answer !== null && answer.state !== 'failed';
}

export function answerWords(item: RequestItem): string {
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
export function goneWords({ outcome }: Pick<RequestItem, 'outcome'>, asked: ActionState | null): string | null {
  if (outcome === null || asked?.kind === 'sending' || asked?.kind === 'asked') return null;
  return `${GONE[outcome]}. Nothing was sent.`;
}
