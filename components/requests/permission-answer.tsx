'use client';

import type { RequestOption } from '@interlude/protocol/ag-ui';
import { MAX_OPTION_LABEL } from '@interlude/protocol/limits';
import { clsx } from 'clsx';
import { type Ref, useEffect, useId, useState } from 'react';
import { SETTLE_MS } from '@/components/ui/misclick-guard';
import { Quoted } from '@/components/ui/name';
import { KeyHint } from '@/components/ui/shortcuts/key-hint';
import { useKeyLabels } from '@/components/ui/shortcuts/use-shortcuts';
import { optionText } from './request-answer';

/** Longest reason that the server accepts. */
const REASON_LENGTH = 4_000;

/**
 * Buttons for the options of a permission request, and a field for the reason of a denial.
 *
 * @param options as returned by `offeredOptions`; the keys choose `first` and `deny`
 * @param settled see `useSettled`
 * @param unseen reason the request can't be allowed yet; null if it can
 */
export function PermissionAnswer(props: {
  row: Ref<HTMLDivElement>;
  settled: boolean;
  unseen: string | null;
  options: readonly RequestOption[];
  first: RequestOption | null;
  deny: RequestOption;
  reason: string | null;
  onReason: (reason: string | null) => void;
  onChoose: (option: RequestOption) => void;
}) {
  const { row, settled, unseen, options, first, deny, reason, onReason, onChoose } = props;
  const whyId = useId();
  const [allowKey] = useKeyLabels('request.allow');
  const [denyKey] = useKeyLabels('request.deny');
  // A short input is seen at once and needs no hint. The hint's line stays, so that nothing moves under the pointer.
  const [isHinted, setHinted] = useState(false);
  const needsHint = unseen !== null && !isHinted;
  useEffect(() => {
    if (!needsHint) return;
    const timer = setTimeout(() => setHinted(true), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [needsHint]);
  return (
    <div
      ref={row}
      className={clsx(
        'mt-2 flex flex-wrap items-center gap-x-4 gap-y-1.5 pl-5 text-xs',
        // On a phone, Allow and Deny have the same place in every card: at its end, in halves.
        reason === null && 'max-sm:grid max-sm:grid-cols-2 max-sm:items-stretch max-sm:gap-x-2',
      )}
    >
      {reason === null ? (
        <>
          {options.map((option) => {
            const isAllow = option.kind === 'allow';
            return (
              <Choice
                key={`${option.kind} ${option.id}`}
                option={option}
                options={options}
                look={option === first ? 'primary' : 'plain'}
                keySign={option === first ? allowKey : option === deny ? denyKey : undefined}
                onPress={() => onChoose(option)}
                isOff={!settled || (isAllow && unseen !== null)}
                isUnseen={isAllow && isHinted && unseen !== null}
                describedBy={isAllow && isHinted && unseen !== null ? whyId : undefined}
                place={option === first ? FIRST_HALF : option === deny ? SECOND_HALF : WHOLE_LINE}
              />
            );
          })}
          <button
            type="button"
            aria-disabled={!settled}
            onClick={() => settled && onReason('')}
            className="h-7 text-ink-3 underline hover:text-ink aria-disabled:cursor-default max-sm:col-span-full max-sm:justify-self-start"
          >
            Deny with a reason
          </button>
          {/* Visible only while the keys work. */}
          <span
            aria-hidden="true"
            className={clsx(
              'key invisible flex gap-x-3 text-2xs text-ink-3 max-sm:hidden',
              settled &&
                'group-focus-within/answer:visible in-[body:not(:has(input:focus,textarea:focus))_[data-keys]]:visible in-[dialog]:visible',
            )}
          >
            {first !== null && (
              <span className={clsx(unseen !== null && 'invisible')}>
                <KeyHint id="request.allow" what="allow" />
              </span>
            )}
            <KeyHint id="request.deny" what="deny" />
          </span>
          {isHinted && (
            <span id={whyId} className="basis-full text-ink-2 max-sm:col-span-full">
              {unseen ?? 'You have seen the whole input.'}
            </span>
          )}
        </>
      ) : (
        <>
          <input
            dir="auto"
            // biome-ignore lint/a11y/noAutofocus: the reader has just opened it
            autoFocus
            aria-label="Reason for denying"
            placeholder="Why, and what to do instead"
            maxLength={REASON_LENGTH}
            value={reason}
            onChange={(event) => onReason(event.target.value)}
            onKeyDown={(event) => {
              if (event.nativeEvent.isComposing) return;
              if (event.key === 'Enter') onChoose(deny);
              if (event.key !== 'Escape') return;
              event.preventDefault();
              onReason(null);
            }}
            className="h-7 min-w-40 flex-1 border-line-strong border-b bg-transparent outline-none placeholder:text-ink-3 focus:border-accent"
          />
          <Choice option={deny} look="plain" onPress={() => onChoose(deny)} isOff={!settled} />
          <button type="button" onClick={() => onReason(null)} className="text-ink-3 underline hover:text-ink">
            Back
          </button>
        </>
      )}
    </div>
  );
}

const WHOLE_LINE = 'max-sm:col-span-full';
const FIRST_HALF = 'max-sm:order-last max-sm:justify-center';
const SECOND_HALF = `${FIRST_HALF} max-sm:col-start-2`;

type Look = 'primary' | 'plain';

const ON: Record<Look, string> = {
  primary: 'bg-ink text-ground hover:bg-ink-2',
  plain: 'border border-line-strong hover:bg-raised',
};
const QUOTED: Record<Look, string> = { primary: 'opacity-80', plain: 'text-ink-2' };
const OFF: Record<Look, string> = { primary: 'bg-raised', plain: 'border border-line' };

/**
 * An unavailable option keeps the focus and its place, because it becomes available soon. It looks unavailable only while
 * its input is unseen: settling takes less than a second.
 */
function Choice(props: {
  option: RequestOption;
  options?: readonly RequestOption[];
  look: Look;
  keySign?: string | undefined;
  onPress: () => void;
  isOff: boolean;
  isUnseen?: boolean;
  describedBy?: string | undefined;
  /** Class names of its place. */
  place?: string;
}) {
  const { option, options, look, keySign, onPress, isOff, isUnseen = false, describedBy, place } = props;
  const { word, label } = optionText(option, options);
  return (
    <button
      type="button"
      onClick={() => !isOff && onPress()}
      aria-disabled={isOff}
      aria-describedby={describedBy}
      aria-keyshortcuts={keySign}
      className={clsx(
        'flex min-h-7 min-w-0 items-center rounded px-3 py-0.5 text-left font-medium transition-colors duration-300',
        isUnseen ? OFF[look] : ON[look],
        isUnseen && 'cursor-default text-ink-3',
        place,
      )}
    >
      <span className="min-w-0 [overflow-wrap:anywhere]">
        {label === null ? word : `${word}: `}
        {label !== null && (
          <span className={clsx('font-normal', !isUnseen && QUOTED[look])}>
            <Quoted text={label} max={MAX_OPTION_LABEL} signs={Number.POSITIVE_INFINITY} />
          </span>
        )}
      </span>
    </button>
  );
}
