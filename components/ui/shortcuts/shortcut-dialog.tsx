'use client';

import { X } from 'lucide';
import { useLayoutEffect, useRef } from 'react';
import { Icon } from '../icon';
import { SHORTCUTS, type ShortcutId } from './shortcut-list';
import { SHORTCUT_WORDS, signOf } from './shortcut-words';
import { useOpenDialog, useShortcuts } from './use-shortcuts';

const IDS = Object.keys(SHORTCUTS) as ShortcutId[];
const PLACES = [...new Set(IDS.map((id) => SHORTCUT_WORDS[id][0]))];

/** The list of shortcuts, for as long as it is open. */
export function ShortcutDialog({ onClose }: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useOpenDialog();
  useShortcuts({ help: onClose });
  // It closes as it is taken away. One that closed first would be out of sight, and keep the keys, until the browser
  // tells of it: that is another task, and the next key may come before it.
  useLayoutEffect(() => {
    const element = dialog.current;
    element?.showModal();
    return () => element?.close();
  }, []);
  return (
    <dialog
      ref={dialog}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      // A browser that is asked twice closes it by itself. In development it is taken away and shown again at once.
      onClose={(event) => event.currentTarget.open || onClose()}
      aria-labelledby="shortcuts-title"
      // A press on the backdrop lands on the dialog itself, one on its content does not.
      onPointerDown={(event) => event.target === event.currentTarget && onClose()}
      className="m-auto max-h-[calc(100dvh-32px)] w-[min(420px,calc(100vw-32px))] rounded-lg bg-ground p-0 text-ink shadow-2xl backdrop:bg-black/40"
    >
      <div className="px-6 py-5">
        <div className="flex items-center justify-between">
          <h2 id="shortcuts-title" className="font-medium text-md">
            Keyboard shortcuts
          </h2>
          <button type="button" aria-label="Close" onClick={onClose} className="hit text-ink-3 hover:text-ink">
            <Icon of={X} size={15} />
          </button>
        </div>
        {PLACES.map((place) => (
          <section key={place} className="mt-4">
            <h3 className="text-2xs text-ink-3">{place}</h3>
            <dl>
              {IDS.filter((id) => SHORTCUT_WORDS[id][0] === place).map((id) => (
                <div key={id} className="flex items-center justify-between border-line border-b py-1 last:border-0">
                  <dt>{SHORTCUT_WORDS[id][1]}</dt>
                  <dd className="flex gap-2">
                    {SHORTCUTS[id].keys.map((key) => (
                      <kbd key={key} className="text-ink-2 text-xs">
                        {signOf(key)}
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
  );
}
