'use client';

import type { RequestOption } from '@interlude/protocol/ag-ui';
import { defaultOption } from '@interlude/protocol/event-fields';
import { ChevronDown } from 'lucide';
import { useRef } from 'react';
import { DENY, decisionOf, offeredOptions, optionText } from '@/components/requests/request-answer';
import { useCardKeys, useOfferAnswers } from '@/components/requests/request-board';
import { useHasPassed } from '@/components/ui/clock';
import { Icon } from '@/components/ui/icon';
import { useSettled } from '@/components/ui/misclick-guard';
import { Name } from '@/components/ui/name';
import { ActionButton } from './item-actions';
import { type RequestedItem, useAnswer } from './item-request';
import { itemName, wholeInput } from './request-line';

/**
 * Allows or denies a permission from its row, if the whole input is in sight there. Otherwise the row unfolds.
 *
 * @param isSeen true once the whole input was in sight, false while the row cuts it, null otherwise
 */
export function RowAnswer(props: { item: RequestedItem; isSeen: boolean | null; onUnfold: () => void }) {
  const { item, isSeen, onUnfold } = props;
  const { id, digest, answerBy, preview } = item.request;
  const { actions, key, state, isSent } = useAnswer(item);
  const box = useRef<HTMLSpanElement>(null);
  const isOver = useHasPassed(answerBy);
  const isWhole = wholeInput(item) !== null;
  const isOpen = isWhole && isSeen !== false && digest !== null && !isOver && !isSent;
  const { settled, isIntended } = useSettled(box, isOpen ? key : null);
  const options = offeredOptions({ options: preview?.options });
  const allow = defaultOption(options, 'allow');
  const deny = defaultOption(options, 'deny') ?? DENY;
  const give = (option: RequestOption) =>
    void actions.request(key, `/requests/${encodeURIComponent(id)}`, { ...decisionOf(option), digest });
  const choose = (option: RequestOption | null, isMeant = false) => {
    if (!isOpen || option === null) onUnfold();
    else if ((isMeant || isIntended()) && (option.kind === 'deny' || isSeen === true)) give(option);
    else return false;
  };
  useCardKeys(isSent ? null : digest, {
    allow: (isMeant) => choose(allow, isMeant),
    deny: (isMeant) => choose(deny, isMeant),
  });
  useOfferAnswers(isOpen && allow !== null ? digest : null, isSeen === true, {
    allow: () => allow !== null && give(allow),
    deny: () => give(deny),
  });
  if (isSent) {
    return (
      <span role="status" className="text-ink-2">
        Answer sent
      </span>
    );
  }
  const about = itemName(item);
  return (
    <span ref={box} className="flex flex-wrap items-center gap-2">
      {state?.kind === 'failed' && (
        <span role="alert" className="text-failed">
          {state.reason}
        </span>
      )}
      {isOpen && allow !== null ? (
        <>
          <Choice
            option={allow}
            options={options}
            about={about}
            isOff={!settled || isSeen !== true}
            onPress={() => choose(allow)}
            isPrimary
          />
          <Choice option={deny} options={options} about={about} isOff={!settled} onPress={() => choose(deny)} />
          <button
            type="button"
            aria-label={`Review: ${about}`}
            aria-expanded={false}
            title="Show the whole request"
            onClick={onUnfold}
            className="hit grid size-5 place-items-center text-ink-3 hover:text-ink"
          >
            <Icon of={ChevronDown} size={14} />
          </button>
        </>
      ) : (
        <ActionButton about={about} label="Review" isMain isExpanded={false} onPress={onUnfold} />
      )}
    </span>
  );
}

function Choice(props: {
  option: RequestOption;
  options: readonly RequestOption[];
  about: string;
  isOff: boolean;
  isPrimary?: boolean;
  onPress: () => void;
}) {
  const { option, options, about, isOff, isPrimary = false, onPress } = props;
  const { word, label } = optionText(option, options);
  // A list has many of these buttons, so they stand out less than the page's own action.
  const look = isPrimary ? 'border-ink' : 'border-line-strong text-ink-2';
  return (
    <button
      type="button"
      aria-label={`${word}: ${about}`}
      aria-disabled={isOff}
      aria-keyshortcuts={isPrimary ? 'a' : 'd'}
      onClick={onPress}
      className={`min-h-7 rounded border px-2.5 font-medium hover:bg-raised ${look}`}
    >
      {word}
      {label !== null && (
        <span className="font-normal opacity-80">
          : <Name text={label} max={40} />
        </span>
      )}
    </button>
  );
}
