'use client';

import { X } from 'lucide';
import { useLayoutEffect, useRef } from 'react';
import { Icon } from '../icon';
import { SHORTCUTS, type ShortcutId, useOpenDialog, useShortcuts } from './use-shortcuts';

const IDS = Object.keys(SHORTCUTS) as ShortcutId[];
const PLACES = [...new Set(IDS.map((id) => SHORTCUT_LABELS[id][0]))];

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
              {IDS.filter((id) => SHORTCUT_LABELS[id][0] === place).map((id) => (
                <div key={id} className="flex items-center justify-between border-line border-b py-1 last:border-0">
                  <dt>{SHORTCUT_LABELS[id][1]}</dt>
                  <dd className="flex gap-2">
                    {SHORTCUTS[id].keys.map((key) => (
                      <kbd key={key} className="text-ink-2 text-xs">
                        {keyLabel(key)}
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

/** What each shortcut does, by where it does it, as the list of them says it. */
export const SHORTCUT_LABELS: Record<ShortcutId, readonly [where: string, what: string]> = {
  'sessions.search': ['Sessions', 'Search'],
  'sessions.first-found': ['Sessions', 'From the search to what it found'],
  'sessions.next': ['Sessions', 'Next session'],
  'sessions.previous': ['Sessions', 'Previous session'],
  'sessions.open': ['Sessions', 'Open it'],
  'sessions.leave-search': ['Sessions', 'Leave the search; once more, clear it'],
  'transcript.next': ['Transcript', 'Next turn'],
  'transcript.previous': ['Transcript', 'Previous turn'],
  'transcript.next-woken': ['Transcript', 'Next turn the agent woke for'],
  'transcript.previous-woken': ['Transcript', 'Previous one'],
  'transcript.page-down': ['Transcript', 'A page down'],
  'transcript.page-up': ['Transcript', 'A page up'],
  'transcript.latest': ['Transcript', 'Latest'],
  'transcript.first': ['Transcript', 'Oldest loaded turn'],
  'transcript.log': ['Transcript', 'The agent’s log, beneath it'],
  'transcript.in-log': ['Transcript', 'Show the focused turn in the log'],
  'session.why': ['Transcript', 'Why the session is in its state: the evidence'],
  'session.arrange': ['Transcript', 'Rename, pin or archive the session'],
  'transcript.leave': ['Transcript', 'Back to the sessions'],
  'message.write': ['Writing to the agent', 'Write a message'],
  'message.send': ['Writing to the agent', 'Send it'],
  'message.new-line': ['Writing to the agent', 'New line'],
  'message.sent-before': ['Writing to the agent', 'What was sent before, in an empty message'],
  'message.leave': ['Writing to the agent', 'Leave the message'],
  'turn.interrupt': ['Writing to the agent', 'Interrupt the turn that is open'],
  'log.search': ['Log', 'Search the log'],
  'log.clear-search': ['Log', 'Leave the search; once more, clear it'],
  'log.next-hit': ['Log', 'Next hit'],
  'log.previous-hit': ['Log', 'Previous hit'],
  'log.follow': ['Log', 'Follow the end'],
  'log.wrap': ['Log', 'Wrap long lines'],
  'log.level': ['Log', 'Show debug … fatal and above'],
  'log.first': ['Log', 'First line'],
  'log.last': ['Log', 'Last line'],
  'log.next': ['Log', 'Next line'],
  'log.previous': ['Log', 'Previous line'],
  'log.unfold': ['Log', 'Unfold it'],
  'log.leave': ['Log', 'Back to the transcript'],
  'inbox.next-request': ['Everywhere', 'The next request that waits for an answer'],
  'inbox.next': ['Inbox', 'Next item'],
  'inbox.previous': ['Inbox', 'Previous item'],
  'inbox.unfold': ['Inbox', 'Answer or retry it, here'],
  'inbox.select': ['Inbox', 'Select it'],
  'inbox.seen': ['Inbox', 'Mark it as seen, or not seen'],
  'inbox.claim': ['Inbox', 'Claim or release it'],
  'inbox.snooze': ['Inbox', 'Snooze it for an hour, or wake it'],
  'request.allow': ['On a request, or its row in the inbox', 'Allow'],
  'request.deny': ['On a request, or its row in the inbox', 'Deny'],
  help: ['Everywhere', 'This list'],
};

const SIGNS: Record<string, string> = { ArrowDown: '↓', ArrowUp: '↑', Escape: 'Esc', Control: 'Ctrl' };

/** As it stands on the key: `Ctrl+.`, `⌘.`, `↓`. */
export function keyLabel(key: string): string {
  const parts = key.split('+').map((part) => SIGNS[part] ?? part);
  return parts.join('+').replace('Meta+', '⌘');
}
