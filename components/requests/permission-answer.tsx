'use client';

import { useState } from 'react';

/** Longest reason the server takes. */
const REASON_LENGTH = 4_000;

/** Allow or deny, and why not. */
export function PermissionAnswer({ onAnswer }: { onAnswer: (body: object) => void }) {
  const [reason, setReason] = useState<string | null>(null);
  const deny = () => onAnswer({ behavior: 'deny', ...(reason?.trim() ? { message: reason.trim() } : {}) });
  return (
    <div className="mt-2 flex flex-wrap items-center gap-x-4 gap-y-1.5 pl-5 text-xs">
      {reason === null ? (
        <>
          <Choice label="Allow" keySign="a" onPress={() => onAnswer({ behavior: 'allow' })} primary />
          <Choice label="Deny" keySign="d" onPress={deny} />
          <button type="button" onClick={() => setReason('')} className="text-ink-3 underline hover:text-ink">
            Deny with a reason
          </button>
        </>
      ) : (
        <>
          <input
            // biome-ignore lint/a11y/noAutofocus: it was just asked for
            autoFocus
            aria-label="Reason for denying"
            placeholder="Why not, and what to do instead"
            maxLength={REASON_LENGTH}
            value={reason}
            onChange={(event) => setReason(event.target.value)}
            onKeyDown={(event) => {
              if (event.nativeEvent.isComposing) return;
              if (event.key === 'Enter') deny();
              if (event.key !== 'Escape') return;
              event.preventDefault();
              setReason(null);
            }}
            className="h-7 min-w-40 flex-1 border-line-strong border-b bg-transparent outline-none placeholder:text-ink-3 focus:border-accent"
          />
          <Choice label="Deny" onPress={deny} />
          <button type="button" onClick={() => setReason(null)} className="text-ink-3 underline hover:text-ink">
            Back
          </button>
        </>
      )}
    </div>
  );
}

function Choice(props: { label: string; keySign?: string; onPress: () => void; primary?: boolean }) {
  const { label, keySign, onPress, primary = false } = props;
  return (
    <button
      type="button"
      onClick={onPress}
      aria-keyshortcuts={keySign}
      className={
        primary
          ? 'flex h-7 items-center gap-2 rounded bg-ink px-3 font-medium text-ground hover:bg-ink-2'
          : 'flex h-7 items-center gap-2 rounded border border-line-strong px-3 font-medium hover:bg-raised'
      }
    >
      {label}
      {keySign !== undefined && (
        <span aria-hidden="true" className="font-mono text-2xs max-sm:hidden">
          {keySign}
        </span>
      )}
    </button>
  );
}
