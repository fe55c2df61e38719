'use client';

import { clsx } from 'clsx';
import { Check, Copy, Link2, X } from 'lucide';
import { useEffect, useState } from 'react';
import { Icon } from './icon';

const SHOWN_MS = 1_600;

/**
 * Copies `text()` and shows the outcome on the button.
 *
 * @param label such as `Copy answer`
 */
export function CopyButton(props: {
  label: string;
  text: () => string;
  icon?: 'copy' | 'link';
  /** True to show the label beside the icon. */
  withLabel?: boolean;
  className?: string;
}) {
  const { label, text, icon = 'copy', withLabel = false, className } = props;
  const [outcome, setOutcome] = useState<'copied' | 'refused' | null>(null);

  useEffect(() => {
    if (outcome === null) return;
    const timer = setTimeout(() => setOutcome(null), SHOWN_MS);
    return () => clearTimeout(timer);
  }, [outcome]);

  const sign = outcome === 'copied' ? Check : outcome === 'refused' ? X : icon === 'link' ? Link2 : Copy;
  const status = outcome === 'copied' ? 'Copied' : outcome === 'refused' ? 'Copying is blocked' : label;
  return (
    <button
      type="button"
      aria-label={status}
      title={status}
      onClick={() => {
        writeClipboard(text()).then(
          () => setOutcome('copied'),
          () => setOutcome('refused'),
        );
      }}
      className={clsx(
        'hit inline-flex items-center gap-1 rounded text-2xs text-ink-3 transition-colors hover:text-ink',
        outcome === 'copied' && 'text-working hover:text-working',
        className,
      )}
    >
      <Icon of={sign} size={13} strokeWidth={1.75} />
      {withLabel && <span>{outcome === null ? label : status}</span>}
    </button>
  );
}

/** Falls back to `execCommand`: outside secure contexts and in some frames the clipboard API is missing. */
async function writeClipboard(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    return;
  } catch {
    // Falls through to `execCommand`.
  }
  const field = document.createElement('textarea');
  field.value = text;
  field.setAttribute('readonly', '');
  field.className = 'fixed opacity-0';
  document.body.append(field);
  field.select();
  const done = document.execCommand('copy');
  field.remove();
  if (!done) throw new Error('The browser refused to copy');
}
