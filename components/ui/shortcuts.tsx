'use client';

import { Keyboard, X } from 'lucide-react';
import { useEffect, useRef } from 'react';
import { isTyping } from './is-typing';

const SHORTCUTS: { where: string; keys: [string[], string][] }[] = [
  {
    where: 'Sessions',
    keys: [
      [['/'], 'Search'],
      [['j', '↓'], 'Next session'],
      [['k', '↑'], 'Previous session'],
      [['Enter'], 'Open it'],
      [['Esc'], 'Leave the search; once more, clear it'],
    ],
  },
  {
    where: 'Transcript',
    keys: [
      [['j'], 'Next turn'],
      [['k'], 'Previous turn'],
      [['w'], 'Next turn the agent woke for'],
      [['W'], 'Previous one'],
      [['G', 'End'], 'Latest'],
      [['Home'], 'Oldest loaded turn'],
      [['l'], 'The agent’s log, beneath it'],
      [['L'], 'Show the focused turn in the log'],
      [['Esc'], 'Back to the sessions'],
    ],
  },
  {
    where: 'Writing to the agent',
    keys: [
      [['c'], 'Write a message'],
      [['Enter'], 'Send it'],
      [['Shift+Enter'], 'New line'],
      [['↑'], 'What was sent before, in an empty message'],
      [['Esc'], 'Leave the message'],
      [['Ctrl+.', '⌘.'], 'Interrupt the turn that is open'],
    ],
  },
  {
    where: 'Log',
    keys: [
      [['/'], 'Search the log'],
      [['Esc'], 'Leave the search; once more, clear it'],
      [['n', 'N'], 'Next hit, previous hit'],
      [['f'], 'Follow the end'],
      [['w'], 'Wrap long lines'],
      [['1 – 5'], 'Show debug … fatal and above'],
      [['g', 'G'], 'First line, last line'],
      [['j', 'k'], 'Next line, previous line'],
      [['Enter'], 'Unfold it'],
    ],
  },
  {
    where: 'On a request',
    keys: [
      [['a'], 'Allow'],
      [['d'], 'Deny'],
    ],
  },
  { where: 'Everywhere', keys: [[['?'], 'This list']] },
];

/** The list of shortcuts, on "?" or from its button. */
export function Shortcuts() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key !== '?' || event.metaKey || event.ctrlKey || event.altKey || isTyping(event)) return;
      event.preventDefault();
      if (dialog.current?.open) dialog.current.close();
      else dialog.current?.showModal();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);

  return (
    <>
      <button
        type="button"
        aria-label="Keyboard shortcuts"
        title="Keyboard shortcuts (?)"
        onClick={() => dialog.current?.showModal()}
        className="hit grid size-5 place-items-center text-ink-3 hover:text-ink"
      >
        <Keyboard size={14} strokeWidth={1.75} aria-hidden="true" />
      </button>
      <dialog
        ref={dialog}
        aria-labelledby="shortcuts-title"
        // A press on the backdrop lands on the dialog itself, one on its content does not.
        onPointerDown={(event) => event.target === event.currentTarget && event.currentTarget.close()}
        className="m-auto max-h-[calc(100dvh-32px)] w-[min(420px,calc(100vw-32px))] rounded-lg bg-ground p-0 text-ink shadow-2xl backdrop:bg-black/40"
      >
        <div className="px-6 py-5">
          <div className="flex items-center justify-between">
            <h2 id="shortcuts-title" className="font-medium text-md">
              Keyboard shortcuts
            </h2>
            <button
              type="button"
              aria-label="Close"
              onClick={() => dialog.current?.close()}
              className="hit text-ink-3 hover:text-ink"
            >
              <X size={15} aria-hidden="true" />
            </button>
          </div>
          {SHORTCUTS.map(({ where, keys }) => (
            <section key={where} className="mt-4">
              <h3 className="text-2xs text-ink-3">{where}</h3>
              <dl>
                {keys.map(([signs, what]) => (
                  <div key={what} className="flex items-center justify-between border-line border-b py-1 last:border-0">
                    <dt>{what}</dt>
                    <dd className="flex gap-2">
                      {signs.map((sign) => (
                        <kbd key={sign} className="text-ink-2 text-xs">
                          {sign}
                        </kbd>
                      ))}
                    </dd>
                  </div>
                ))}
              </dl>
            </section>
          ))}
        </div>
      </dialog>
    </>
  );
}
