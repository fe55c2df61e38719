'use client';

import type { NewToken } from '@interlude/protocol/access';
import { BASE_PATH } from '@interlude/protocol/base-path.mjs';
import { useEffect, useRef } from 'react';
import { useHydrated } from '@/components/ui/clock';
import { CopyButton } from '@/components/ui/copy-button';
import { tokenCommands } from './token-commands';

/** A secret, this once, and what to do with it. */
export function NewTokenNotice({ made, onClose }: { made: NewToken; onClose: () => void }) {
  const { token, credential } = made;
  const isKnown = useHydrated();
  const box = useRef<HTMLElement>(null);
  useEffect(() => box.current?.focus(), []);
  const steps = tokenCommands(credential, isKnown ? location.origin + BASE_PATH : '');
  return (
    <section
      ref={box}
      tabIndex={-1}
      aria-label="The new token"
      className="mb-5 grid max-w-2xl gap-3 rounded-md border border-line-strong p-4 outline-none"
    >
      <p>
        <span className="font-medium">This is the token, shown this once.</span>{' '}
        <span className="text-ink-2">Nobody can read it again; who loses it makes another.</span>
      </p>
      <p className="flex items-start gap-3 rounded-md bg-raised px-3 py-2">
        <code className="min-w-0 flex-1 text-xs [overflow-wrap:anywhere]">{token}</code>
        <CopyButton label="Copy token" text={() => token} withLabel className="mt-px shrink-0" />
      </p>
      {steps.map(({ what, command }) => (
        <div key={command}>
          <p className="pb-1 text-ink-2 text-xs">{what}</p>
          <p className="flex items-start gap-3 rounded-md bg-sunken px-3 py-2">
            <code className="min-w-0 flex-1 whitespace-pre-wrap text-xs [overflow-wrap:anywhere]">{command}</code>
            <CopyButton label="Copy command" text={() => command} className="mt-px shrink-0" />
          </p>
        </div>
      ))}
      <button
        type="button"
        onClick={onClose}
        className="h-8 w-fit rounded-md border border-line-strong px-4 hover:bg-raised"
      >
        I have it
      </button>
    </section>
  );
}
