'use client';

import type { LogLine } from '@interlude/protocol/read-models';
import { ScanSearch } from 'lucide';
import { page } from '@/components/live/ask-server';
import { CopyButton } from '@/components/ui/copy-button';
import { Icon } from '@/components/ui/icon';
import { plainLine } from './log-words';

/** What can be done with a line, over its end. */
export function LineActions(props: { line: LogLine; onContext: ((line: LogLine) => void) | null; hasLink: boolean }) {
  const { line, onContext, hasLink } = props;
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: only keeps clicks on the buttons from being clicks on the line
    // biome-ignore lint/a11y/noStaticElementInteractions: see above
    <span
      onClick={(event) => event.stopPropagation()}
      className="absolute top-0 right-2 flex h-5 indent-0 items-center gap-2 rounded bg-raised px-1.5 font-sans"
    >
      {onContext !== null && (
        <button
          type="button"
          aria-label="Show in context"
          title="Show in context"
          onClick={() => onContext(line)}
          className="hit text-ink-3 hover:text-ink"
        >
          <Icon of={ScanSearch} size={13} strokeWidth={1.75} />
        </button>
      )}
      {/* The address of a frame opens nothing by itself. */}
      {hasLink && page.way === null && (
        <CopyButton
          label="Copy link to line"
          icon="link"
          text={() => `${location.origin}${location.pathname}#${line.position}`}
        />
      )}
      <CopyButton label="Copy line" text={() => plainLine(line)} />
    </span>
  );
}
