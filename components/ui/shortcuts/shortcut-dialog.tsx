'use client';

import { X } from 'lucide';
import { usePathname } from 'next/navigation';
import { type ReactNode, useEffect, useRef } from 'react';
import { Icon } from '../icon';
import { Link } from '../link';
import { Modal } from '../modal';
import { SHORTCUTS, type ShortcutId, useKeyLabels, useShortcuts } from './use-shortcuts';

/** Section and description of each shortcut in the dialog. */
export const SHORTCUT_LABELS: Record<ShortcutId, readonly [where: string, what: string]> = {
  'sessions.search': ['Sessions', 'Search'],
  'sessions.first-found': ['Sessions', 'Go to the search results'],
  'sessions.next': ['Sessions', 'Next session'],
  'sessions.previous': ['Sessions', 'Previous session'],
  'sessions.open': ['Sessions', 'Open session'],
  'sessions.leave-search': ['Sessions', 'Leave the search; press again to clear the filters'],
  'transcript.next': ['Transcript', 'Next turn'],
  'transcript.previous': ['Transcript', 'Previous turn'],
  'transcript.next-woken': ['Transcript', 'Next turn the agent started'],
  'transcript.previous-woken': ['Transcript', 'Previous turn the agent started'],
  'transcript.page-down': ['Transcript', 'Page down'],
  'transcript.page-up': ['Transcript', 'Page up'],
  'transcript.latest': ['Transcript', 'Latest'],
  'transcript.first': ['Transcript', 'First turn'],
  'transcript.log': ['Transcript', 'Show or hide the agent’s log'],
  'transcript.in-log': ['Transcript', 'Show the focused turn in the log'],
  'session.why': ['Transcript', 'Explain the session’s state'],
  'session.arrange': ['Transcript', 'Rename, pin or archive the session'],
  'transcript.leave': ['Everywhere', 'Leave a session, an agent or its log'],
  'message.write': ['Writing to the agent', 'Write a message'],
  'message.send': ['Writing to the agent', 'Send'],
  'message.new-line': ['Writing to the agent', 'New line'],
  'message.sent-before': ['Writing to the agent', 'Previous message, in an empty field'],
  'message.leave': ['Writing to the agent', 'Leave the field'],
  'turn.interrupt': ['Writing to the agent', 'Interrupt the current turn'],
  'log.search': ['Log', 'Search the log'],
  'log.clear-search': ['Log', 'Leave the search; press again to clear it'],
  'log.next-hit': ['Log', 'Next hit; Shift+Enter in the search field'],
  'log.previous-hit': ['Log', 'Previous hit; Enter in the search field'],
  'log.previous-error': ['Log', 'Previous error'],
  'log.next-error': ['Log', 'Next error'],
  'log.follow': ['Log', 'Follow new lines'],
  'log.wrap': ['Log', 'Wrap long lines'],
  'log.level': ['Log', 'Show debug … fatal and above'],
  'log.first': ['Log', 'First line'],
  'log.last': ['Log', 'Last line'],
  'log.next': ['Log', 'Next line'],
  'log.previous': ['Log', 'Previous line'],
  'log.unfold': ['Log', 'Unfold line'],
  'log.leave': ['Log', 'Back to the transcript'],
  'inbox.next-request': ['Everywhere', 'Next open request'],
  'inbox.review': ['Inbox', 'Review all requests'],
  'inbox.next': ['Inbox', 'Next item'],
  'inbox.previous': ['Inbox', 'Previous item'],
  'inbox.open': ['Inbox', 'Open item'],
  'inbox.unfold': ['Inbox', 'Answer or retry'],
  'inbox.select': ['Inbox', 'Select'],
  'inbox.seen': ['Inbox', 'Mark as seen or unseen'],
  'inbox.claim': ['Inbox', 'Claim or release'],
  'inbox.snooze': ['Inbox', 'Snooze for an hour, or unsnooze'],
  'inbox.leave-search': ['Inbox', 'Leave the search; press again to clear the selection, then the search'],
  'request.allow': ['On a request or its inbox row', 'Allow'],
  'request.deny': ['On a request or its inbox row', 'Deny'],
  'list.search': ['Inbox and agents', 'Search'],
  'board.next': ['Agents', 'Next agent'],
  'board.previous': ['Agents', 'Previous agent'],
  'board.select': ['Agents', 'Select the agent'],
  'board.open': ['Agents', 'Open the agent'],
  'board.leave-search': ['Agents', 'Leave the search; press again to clear the selection, then the filters'],
  'page.inbox': ['Everywhere', 'Go to the inbox'],
  'page.sessions': ['Everywhere', 'Go to the sessions'],
  'page.agents': ['Everywhere', 'Go to the agents'],
  'page.settings': ['Everywhere', 'Go to the settings'],
  'sidebar.toggle': ['Everywhere', 'Collapse or expand the sidebar'],
  help: ['Everywhere', 'Show this list'],
};

export const SHORTCUT_IDS = Object.keys(SHORTCUTS) as ShortcutId[];
const PLACES = [...new Set(SHORTCUT_IDS.map((id) => SHORTCUT_LABELS[id][0]))];

/** Places with the shortcuts of a page, by the start of its path. */
const PAGES: readonly (readonly [start: RegExp, places: readonly string[]])[] = [
  [/^\/inbox/, ['Inbox', 'Inbox and agents', 'On a request or its inbox row']],
  [/^\/agents\/.*\/logs/, ['Log']],
  [/^\/agents/, ['Agents', 'Inbox and agents']],
  [/^\/sessions/, ['Transcript', 'Writing to the agent', 'On a request or its inbox row']],
  [/^\/$/, ['Sessions', 'On a request or its inbox row']],
];

export function ShortcutDialog({ onClose }: { onClose: () => void }) {
  useShortcuts({ help: onClose });
  const path = usePathname() ?? '';
  const heading = useRef<HTMLHeadingElement>(null);
  // After the dialog has focused its first link.
  useEffect(() => heading.current?.focus(), []);
  return (
    <Modal
      label="Keyboard shortcuts"
      onClose={onClose}
      className="m-auto max-h-[calc(100dvh-32px)] w-[min(780px,calc(100vw-32px))] rounded-lg"
    >
      <div className="px-6 py-5">
        <div className="flex items-center justify-between gap-4">
          <h2 ref={heading} tabIndex={-1} className="flex-1 font-medium text-md outline-none">
            Keyboard shortcuts
          </h2>
          <Link href="/settings/shortcuts" onClick={onClose} className="text-ink-3 text-xs hover:text-ink">
            Change
          </Link>
          <button type="button" aria-label="Close" onClick={onClose} className="hit text-ink-3 hover:text-ink">
            <Icon of={X} size={15} />
          </button>
        </div>
        <div className="gap-x-12 sm:columns-2">
          <ShortcutList
            className="break-inside-avoid pt-4"
            first={PAGES.find(([start]) => start.test(path))?.[1]}
            keysOf={(id) => <Keys id={id} />}
          />
        </div>
        <p className="pt-4 text-2xs text-ink-3">On a question, a digit chooses an option, and Enter answers.</p>
      </div>
    </Modal>
  );
}

/**
 * All shortcuts by place.
 *
 * @param props.first places at the top
 * @param props.keysOf renders the keys of a shortcut
 */
export function ShortcutList(props: {
  className?: string;
  first?: readonly string[] | undefined;
  keysOf: (id: ShortcutId) => ReactNode;
}) {
  const { className, first = [], keysOf } = props;
  return [...new Set([...first, ...PLACES])].map((place) => (
    <section key={place} className={className}>
      <h3 className="text-2xs text-ink-3">{place}</h3>
      <dl>
        {SHORTCUT_IDS.filter((id) => SHORTCUT_LABELS[id][0] === place).map((id) => (
          <div
            key={id}
            className="flex flex-wrap items-center justify-between gap-x-4 border-line border-b py-1 last:border-0"
          >
            <dt>{SHORTCUT_LABELS[id][1]}</dt>
            <dd className="flex flex-wrap items-center gap-x-2">{keysOf(id)}</dd>
          </div>
        ))}
      </dl>
    </section>
  ));
}

/** The keys in effect. */
export function Keys({ id }: { id: ShortcutId }) {
  const labels = useKeyLabels(id);
  if (labels.length === 0) return <span className="text-ink-3 text-xs">off</span>;
  return labels.map((label) => (
    <kbd key={label} className="text-ink-2 text-xs">
      {label}
    </kbd>
  ));
}
