'use client';

import { clsx } from 'clsx';
import { useState } from 'react';
import { CopyButton } from '@/components/ui/copy-button';
import { plural } from '@/components/ui/duration';
import { endOfFirstPart } from '@/components/ui/first-part';
import { UnfoldButton } from '../unfold';
import { useHighlight } from './use-highlight';

const CLAMP_LINES = 40;
const CLAMP_CHARACTERS = 6_000;
/** What a browser lays out without a pause. Copying takes all of it. */
const MOST_CHARACTERS = 40_000;

/** Code an agent wrote. The language names itself quietly; long code is clamped until asked for. */
export function CodeBlock({ code, language, streaming }: { code: string; language: string; streaming: boolean }) {
  const [all, setAll] = useState(false);
  const lines = code.split('\n');
  const isLong = lines.length > CLAMP_LINES + 5 || code.length > CLAMP_CHARACTERS;
  const clamped = !all && !streaming && isLong;
  const head = clamped ? lines.slice(0, CLAMP_LINES).join('\n') : code;
  const shown = head.slice(0, endOfFirstPart(head, clamped ? CLAMP_CHARACTERS : MOST_CHARACTERS));
  const isNamed = language !== '' && language !== 'text';
  const coloured = useHighlight(shown, language.toLowerCase(), !streaming);

  return (
    <figure dir="ltr" className="group/code relative my-3 rounded-md bg-sunken">
      <figcaption className="absolute top-1.5 right-1.5 text-2xs text-ink-3">
        {isNamed && (
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
        // A name has a line of its own: code that is wider than its box goes on beneath whatever stands in its corner.
        className={clsx('overflow-x-auto px-3 py-2.5 text-xs', isNamed && 'sm:pt-7')}
      >
        <code>{coloured}</code>
      </pre>
      {clamped && (
        <UnfoldButton onPress={() => setAll(true)} className="w-full px-3 pb-2 text-left text-2xs text-ink-3">
          Show all {lines.length > CLAMP_LINES + 5 ? plural(lines.length, 'line') : plural(code.length, 'character')}
        </UnfoldButton>
      )}
      {!clamped && shown.length < code.length && (
        <p className="px-3 pb-2 text-2xs text-ink-3">
          … {plural(code.length - shown.length, 'more character')}. Copying takes all of it.
        </p>
      )}
    </figure>
  );
}
