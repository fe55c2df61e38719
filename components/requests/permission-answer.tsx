'use client';

import { clsx } from 'clsx';
import { type Ref, useId, useState } from 'react';

/** Longest reason the server takes. */
const REASON_LENGTH = 4_000;

/**
 * Allow or deny, and why not.
 *
 * @param settled whether a press can be meant for these; before that they take none
 * @param unseen why it can't be allowed yet, else null
 */
export function PermissionAnswer(props: {
  row: Ref<HTMLDivElement>;
  settled: boolean;
  unseen: string | null;
  reason: string | null;
  onReason: (reason: string | null) => void;
  onAllow: () => void;
  onDeny: () => void;
}) {
  const { row, settled, unseen, reason, onReason, onAllow, onDeny } = props;
  const whyId = useId();
  // Once it is read the words go, but not their room: what stands below must not move under a pointer.
  const [said, setSaid] = useState(unseen);
  if (unseen !== null && unseen !== said) setSaid(unseen);
  return (
    <div ref={row} className="mt-2 flex flex-wrap items-center gap-x-4 gap-y-1.5 pl-5 text-xs">
      {reason === null ? (
        <>
          <Choice
            label="Allow"
            keySign="a"
            onPress={onAllow}
            isOff={!settled || unseen !== null}
            describedBy={unseen === null ? undefined : whyId}
            primary
          />
          <Choice label="Deny" keySign="d" onPress={onDeny} isOff={!settled} />
          <button
            type="button"
            aria-disabled={!settled}
            onClick={() => settled && onReason('')}
            className="h-7 text-ink-3 underline hover:text-ink aria-disabled:cursor-default"
          >
            Deny with a reason
          </button>
          {said !== null && (
            <span id={whyId} className={clsx('basis-full text-ink-2', unseen === null && 'invisible')}>
              {said}
            </span>
          )}
        </>
      ) : (
        <>
          <input
            // biome-ignore lint/a11y/noAutofocus: it was just asked for
            autoFocus
            aria-label="Reason for denying"
            placeholder="Why, and what to do instead"
            maxLength={REASON_LENGTH}
            value={reason}
            onChange={(event) => onReason(event.target.value)}
            onKeyDown={(event) => {
              if (event.nativeEvent.isComposing) return;
              if (event.key === 'Enter') onDeny();
              if (event.key !== 'Escape') return;
              event.preventDefault();
              onReason(null);
            }}
            className="h-7 min-w-40 flex-1 border-line-strong border-b bg-transparent outline-none placeholder:text-ink-3 focus:border-accent"
          />
          <Choice label="Deny" onPress={onDeny} isOff={!settled} />
          <button type="button" onClick={() => onReason(null)} className="text-ink-3 underline hover:text-ink">
            Back
          </button>
        </>
      )}
    </div>
  );
}

/** One that is off keeps the focus and its place: it is only for a moment, or until more was read. */
function Choice(props: {
  label: string;
  keySign?: string;
  onPress: () => void;
  isOff: boolean;
  describedBy?: string | undefined;
  primary?: boolean;
}) {
  const { label, keySign, onPress, isOff, describedBy, primary = false } = props;
  return (
    <button
      type="button"
      onClick={() => !isOff && onPress()}
      aria-disabled={isOff}
      aria-describedby={describedBy}
      aria-keyshortcuts={keySign}
      className={clsx(
        'flex h-7 items-center gap-2 rounded px-3 font-medium transition-colors duration-300',
        primary && !isOff && 'bg-ink text-ground hover:bg-ink-2',
        primary && isOff && 'bg-raised',
        !primary && 'border',
        !primary && (isOff ? 'border-line' : 'border-line-strong hover:bg-raised'),
        isOff && 'cursor-default text-ink-3',
      )}
    >
      {label}
      {keySign !== undefined && (
        // Only where it works: with the focus here. It keeps its room, so that nothing moves when the focus comes.
        <span
          aria-hidden="true"
          className="invisible font-mono text-2xs group-focus-within/answer:visible max-sm:hidden"
        >
          {keySign}
        </span>
      )}
    </button>
  );
}
