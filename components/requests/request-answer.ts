import type { RequestOption } from '@interlude/protocol/ag-ui';
import type { RequestItem } from '@interlude/protocol/read-models';
import type { KeyboardEvent } from 'react';
import type { ActionState } from '@/components/live/actions';
import { isTyping, keyName } from '@/components/ui/shortcuts/use-shortcuts';
import { quoted } from '@/components/ui/verbatim';

/** True if an answer was given and has not failed. */
export function isAnswering({ answer }: RequestItem, action: ActionState | null): boolean {
  if (action?.kind === 'sending') return true;
  if (action?.kind === 'accepted' && answer?.commandId !== action.commandId) return true;
  return answer !== null && answer.state !== 'failed';
}

/**
 * The agent's title without the tool's name. Null if it repeats the tool's name and input.
 *
 * @example `Bash: rm -rf build && …`, for the command `rm -rf build && npm test`
 */
export function ownTitle(title: string, tool: string | null, input: unknown): string | null {
  const hasTool = tool !== null && title.startsWith(tool) && !/^[\p{L}\p{N}_]/u.test(title.slice(tool.length));
  const rest = hasTool ? title.slice(tool.length).replace(/^[:\s]+/, '') : title;
  const start = flat(rest.replace(/\s*(?:…|\.{3})$/, ''));
  const isRepeated = (typeof input === 'string' ? [input] : Object.values(Object(input ?? {}))).some(
    (value) => typeof value === 'string' && flat(value.slice(0, 2 * title.length)).startsWith(start),
  );
  return isRepeated || rest === '' ? null : rest;
}

function flat(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

/** Lets a digit choose an option of a question, and Enter submit the choice, while the focus is around its form. */
export function answerByKey(event: KeyboardEvent, form: HTMLFormElement | null | undefined): void {
  if (form == null || event.defaultPrevented || isTyping(event.nativeEvent)) return;
  const pressed = keyName(event);
  const option = form.querySelector<HTMLElement>(`[data-option="${CSS.escape(pressed)}"]`);
  if (option !== null) option.click();
  else if (pressed === 'Enter' && event.target === event.currentTarget && isComplete(form)) {
    form.requestSubmit();
  } else return;
  event.preventDefault();
}

function isComplete(form: HTMLFormElement): boolean {
  return form.querySelector('[type=submit][aria-disabled=false]') !== null && form.querySelector(':checked') !== null;
}

export function answerText(item: RequestItem): string {
  const chosen = chosenOption(item);
  const { behavior } = item.answer ?? {};
  const done = behavior === 'allow' ? 'Allowed' : behavior === 'deny' ? 'Denied' : 'Answered';
  return chosen === null ? done : `${done} ${quoted(chosen.label)}`;
}

const CLOSED: Record<NonNullable<RequestItem['outcome']>, string> = {
  allowed: 'Allowed elsewhere',
  denied: 'Denied elsewhere',
  answered: 'Answered elsewhere',
  expired: 'Expired',
  cancelled: 'Withdrawn',
  unknown: 'The agent continued without your answer',
};

/**
 * Message for a reader whose request was closed.
 *
 * @returns null if it is open, or if this page answered it
 */
export function closedText({ outcome }: Pick<RequestItem, 'outcome'>, action: ActionState | null): string | null {
  if (outcome === null || action?.kind === 'sending' || action?.kind === 'accepted') return null;
  return `${CLOSED[outcome]}. Nothing was sent.`;
}

/** Answers to a permission request that has no options of its own. The empty id marks them. */
const YES: RequestOption = { id: '', label: 'Allow', kind: 'allow' };
export const DENY: RequestOption = { id: '', label: 'Deny', kind: 'deny' };

/** Options that allow, then options that deny, each in the agent's order. At least one option denies. */
export function offeredOptions({ options = [YES] }: Pick<RequestItem, 'options'>): readonly RequestOption[] {
  const allowing = options.filter(({ kind }) => kind === 'allow');
  const denying = options.filter(({ kind }) => kind === 'deny');
  return [...allowing, ...(denying.length > 0 ? denying : [DENY])];
}

/**
 * Text of an option: our own word for its effect, and the agent's label. The label alone could mislead.
 *
 * @param others all options of the request
 * @returns `label`: null if it only repeats the word, and no other option does
 */
export function optionText(
  { id, kind, label, isLasting }: RequestOption,
  others: readonly RequestOption[] = [],
): { word: string; label: string | null } {
  const verbs = kind === 'allow' ? ['Allow'] : ['Deny', 'Reject'];
  const word = `${verbs[0]}${isLasting ? ' from now on' : ''}`;
  const repeats = verbs.flatMap((verb) =>
    isLasting ? [`${verb} always`, `Always ${verb.toLowerCase()}`] : [verb, `${verb} once`],
  );
  const isRepeated = (text: string) => text === word || repeats.includes(text);
  const isAmbiguous = others.some(
    (other) => other.id !== id && other.kind === kind && other.isLasting === isLasting && isRepeated(other.label),
  );
  return { word, label: isRepeated(label) && !isAmbiguous ? null : label };
}

/** The wire format of an option. */
export function decisionOf({ id, kind }: RequestOption): { behavior: 'allow' | 'deny'; optionId?: string } {
  return { behavior: kind, ...(id === '' ? {} : { optionId: id }) };
}

/** The option that was chosen here, unless the outcome contradicts it. */
export function chosenOption({ options, answer, outcome }: RequestItem): RequestOption | null {
  const chosen = options?.find(({ id }) => id === answer?.optionId);
  if (chosen === undefined || answer?.state === 'failed') return null;
  return outcome === null || outcome === (chosen.kind === 'allow' ? 'allowed' : 'denied') ? chosen : null;
}

/**
 * Identifies a request and its answer on the page, by id, position and digest. A request that reopens under the same id
 * has a new key.
 */
export function requestKey(item: Pick<RequestItem, 'id' | 'position' | 'digest'>): string {
  return `request:${item.id}:${item.position}:${item.digest ?? ''}`;
}

const expired = new WeakMap<RequestItem, RequestItem>();

/**
 * Marks a request as expired once its `expiresAt` has passed, even if the agent has not reported that. A pending answer
 * takes precedence. Returns the same object for the same request.
 */
export function withExpiry(item: RequestItem, isOver: boolean, action: ActionState | null): RequestItem {
  if (!isOver || item.outcome !== null || isAnswering(item, action)) return item;
  const found = expired.get(item) ?? { ...item, outcome: 'expired' };
  expired.set(item, found);
  return found;
}
