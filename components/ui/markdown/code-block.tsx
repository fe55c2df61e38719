'use client';

import { useState } from 'react';
import { CopyButton } from '@/components/ui/copy-button';
import { useHighlight } from './use-highlight';

const CLAMP_LINES = 40;

/** Code an agent wrote. The language names itself quietly; long code is clamped until asked for. */
export function CodeBlock({ code, language, streaming }: { code: string; language: string; streaming: boolean }) {
  const [all, setAll] = useState(false);
  const lines = code.split('\n');
  const clamped = !all && !streaming && lines.length > CLAMP_LINES + 5;
  const shown = clamped ? lines.slice(0, CLAMP_LINES).join('\n') : code;
  const coloured = useHighlight(shown, language.toLowerCase(), !streaming);

  return (
    <figure className="group/code relative my-3 rounded-md bg-sunken">
      <figcaption className="absolute top-1.5 right-1.5 text-2xs text-ink-3">
        {language !== '' && language !== 'text' && (
          <span className="bg-sunken px-1 group-focus-within/code:hidden group-hover/code:hidden max-sm:hidden">
            {language}
          </span>
        )}
        <CopyButton
          label="Copy code"
          text={() => code}
          className="bg-sunken p-1 pointer-coarse:opacity-100 opacity-0 group-focus-within/code:opacity-100 group-hover/code:opacity-100"
        />
      </figcaption>
      <pre
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a box that scrolls sideways must be reachable by keyboard
        tabIndex={0}
        className="overflow-x-auto px-3 py-2.5 text-xs"
      >
        <code>{coloured}</code>
      </pre>
      {clamped && (
        <button
          type="button"
          onClick={() => setAll(true)}
          className="w-full px-3 pb-2 text-left text-2xs text-ink-3 underline decoration-line-strong underline-offset-2 hover:text-ink"
        >
          Show all {lines.length.toLocaleString('en')} lines
        </button>
      )}
    </figure>
  );
}
